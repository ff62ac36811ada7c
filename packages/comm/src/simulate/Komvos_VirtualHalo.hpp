/// \file Komvos_VirtualHalo.hpp
/// The halo exchange of a sparse matrix on simulated ranks, all in one process. Plain C++, no MPI.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "Komvos_Pattern.hpp"

namespace Komvos {

/// The sparsity pattern of a matrix in compressed row storage; the arrays are the caller's.
struct CsrStructure {
  std::size_t numRows;
  const std::size_t* offset;  ///< [numRows + 1] into column
  const int* column;
};

/// Which rank needs which values of the others, for all ranks at once. Values are sorted by owner, and each has the
/// ascending list of its destinations: about 8 bytes per value and 4 per destination. The halo of 32,768 ranks and more
/// fits into one process this way, where the patterns of all ranks would not.
class VirtualHalo {
 public:
  /// The ranks that need a value, ascending, without its owner.
  struct Destinations {
    const int* first;
    const int* last;
    const int* begin() const { return first; }
    const int* end() const { return last; }
    std::size_t size() const { return static_cast<std::size_t>(last - first); }
  };

  /// The halo of y = A x. A rank needs the entries of x that its rows refer to, P(r) and D(r,t) of Bienz, Gropp and
  /// Olson, eq. (8) and (9). The time is linear in the number of matrix entries.
  /// \param rowOwner    rank of each entry of y, one for each row
  /// \param columnOwner rank of each entry of x, one for each column
  /// \throws BadInput if a rank or a column is out of range, or rowOwner has another length than numRows
  static VirtualHalo ofProduct(int numRanks, const CsrStructure& matrix, const std::vector<int>& rowOwner,
                               const std::vector<int>& columnOwner);

  int numRanks() const { return static_cast<int>(firstValue_.size()) - 1; }
  /// Values that `owner` has, needed by others or not.
  int numValuesOf(int owner) const { return static_cast<int>(firstValue_[owner + 1] - firstValue_[owner]); }
  Destinations destinationsOf(int owner, int local) const {
    const std::int64_t value = firstValue_[owner] + local;
    return {destination_.data() + offset_[value], destination_.data() + offset_[value + 1]};
  }
  /// Pairs of a value and a rank that needs it.
  std::int64_t numNeeds() const { return static_cast<std::int64_t>(destination_.size()); }

  /// The same as patterns of all ranks, normalized, for routes that need preparation. Takes 20 bytes per need.
  std::vector<Pattern> patterns() const;

 private:
  std::vector<std::int64_t> firstValue_;  // numRanks + 1
  std::vector<std::int64_t> offset_;      // number of values + 1
  std::vector<int> destination_;
};

}  // namespace Komvos
