/// \file Komvos_Overlap.hpp
/// Which rows of a product are computed while messages travel, as a value and as text.
#pragma once

#include <optional>
#include <string>

namespace Komvos {

/// Which rows of y = A x are computed while ghosts of x travel. The result is the same, bit for bit.
///
/// To compute rows early hides messages, but reads the matrix in interleaved passes: where it does not fit the caches
/// and rows of both kinds alternate, these passes cost more than they hide.
enum class Overlap {
  none,      ///< all rows in one pass, after the exchange
  interior,  ///< rows without ghosts during the exchange, the others after it
  byNode,    ///< these, then rows that need ghosts of this node only, still during the exchange, then the rest
  automatic  ///< none unless another is clearly faster: the first products are timed, each rank decides for itself
};

/// "none", "interior", "by-node" or "auto".
std::string toString(Overlap overlap);

/// \throws BadInput unless `text` is "none", "interior", "by-node" or "auto".
Overlap parseOverlap(const std::string& text);

namespace Impl {

/// `given`, else KOMVOS_OVERLAP, else automatic. \throws BadInput
Overlap resolveOverlap(std::optional<Overlap> given);

}  // namespace Impl

}  // namespace Komvos
