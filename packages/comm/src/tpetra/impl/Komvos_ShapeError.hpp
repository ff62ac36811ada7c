/// \file Komvos_ShapeError.hpp
/// The text for a vector that does not fit.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>

namespace Komvos::Impl {

/// Local rows and columns of a vector.
struct Shape {
  std::size_t rows, columns;
};

/// "NodeAwareImport::doImport: source is 7 x 1, it must be 8 x 1", or nothing if the shapes are the same; then it does
/// not allocate.
inline std::string shapeError(const char* caller, const char* vector, Shape shape, Shape expected) {
  if (shape.rows == expected.rows && shape.columns == expected.columns) {
    return {};
  }
  const auto text = [](Shape s) { return std::to_string(s.rows) + " x " + std::to_string(s.columns); };
  return std::string(caller) + ": " + vector + " is " + text(shape) + ", it must be " + text(expected);
}

/// The first that is not empty, if any.
inline std::string firstError(std::initializer_list<std::string> errors) {
  for (const std::string& error : errors) {
    if (!error.empty()) {
      return error;
    }
  }
  return {};
}

}  // namespace Komvos::Impl
