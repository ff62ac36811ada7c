/// \file Komvos_RequireMap.hpp
/// Whether a vector has the elements that an operator takes: lengths alone would let a permuted one pass.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>

#include "Komvos_Error.hpp"
#include "Komvos_TpetraShim.hpp"

namespace Komvos::Impl {

/// \throws PlanMismatch unless the elements of a vector on this rank are those of `wanted`, in the same order
/// \note Not collective.
template <class Map>
void requireMap(const char* vector, const Map& found, const Map& wanted) {
  if (&found == &wanted || found.locallySameAs(wanted)) {
    return;
  }
  std::string difference;
  const std::size_t length = localLength(wanted);
  for (std::size_t i = 0; i < std::min(length, localLength(found)) && difference.empty(); ++i) {
    const auto local = static_cast<typename Map::local_ordinal_type>(i);
    if (found.getGlobalElement(local) != wanted.getGlobalElement(local)) {
      difference = "; element " + std::to_string(i) + " is unknown " + std::to_string(found.getGlobalElement(local)) +
                   ", not " + std::to_string(wanted.getGlobalElement(local));
    }
  }
  throw PlanMismatch(std::string(vector) + " has " + std::to_string(localLength(found)) + " elements on rank " +
                     std::to_string(wanted.getComm()->getRank()) + ", the operator's map " + std::to_string(length) +
                     difference + ". Make vectors from getDomainMap(), or bring them there by a Tpetra::Import");
}

}  // namespace Komvos::Impl
