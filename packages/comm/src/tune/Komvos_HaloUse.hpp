/// \file Komvos_HaloUse.hpp
/// A use of a halo, and which uses are decided together.
#pragma once

namespace Komvos::Impl {

/// A forward exchange, alone or in a product, as one rank saw it.
struct HaloUse {
  double seconds;  ///< all that the user waited for: a whole product, or an import
  double exposed;  ///< of these, in the exchange itself: all that another variant could save
  int columns;
};

/// What is fastest depends on how many columns a vector has. Decisions are made for each of these classes: 1; 2 and 3;
/// 4 and more.
constexpr int numWidthClasses = 3;

constexpr int widthClass(int columns) { return columns == 1 ? 0 : columns < 4 ? 1 : 2; }

/// The least columns of a class, which stand for it where one number is needed.
constexpr int columnsOfClass(int widthClass) { return widthClass == 0 ? 1 : widthClass == 1 ? 2 : 4; }

}  // namespace Komvos::Impl
