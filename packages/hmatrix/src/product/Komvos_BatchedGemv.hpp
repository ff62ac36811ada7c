/// \file Komvos_BatchedGemv.hpp
/// The products of teams that Kokkos Kernels has, where it is installed.
#pragma once

#include <Trilinos_version.h>

#include <Kokkos_Core.hpp>

#include "Komvos_BlockBatches.hpp"

#if __has_include(<KokkosBatched_Gemv_Decl.hpp>)
#include <KokkosBatched_Gemv_Decl.hpp>
#define KOMVOS_HAVE_KOKKOS_BATCHED
#if TRILINOS_MAJOR_MINOR_VERSION >= 140000  // where those of KokkosBatched take stacks of matrices only
#include <KokkosBlas2_team_gemv.hpp>
#endif
#endif

namespace Komvos::Impl {

#ifdef KOMVOS_HAVE_KOKKOS_BATCHED
constexpr bool kokkosBatchedIsThere = true;
#if TRILINOS_MAJOR_MINOR_VERSION >= 140000
namespace TeamProducts = KokkosBlas;
#else
namespace TeamProducts = KokkosBatched;
#endif

template <BatchLoop Loop, class Team>
struct BatchedGemv;
template <class Team>
struct BatchedGemv<BatchLoop::TeamGemv, Team>
    : TeamProducts::TeamGemv<Team, TeamProducts::Trans::NoTranspose, TeamProducts::Algo::Gemv::Blocked> {};
template <class Team>
struct BatchedGemv<BatchLoop::TeamVectorGemv, Team>
    : TeamProducts::TeamVectorGemv<Team, TeamProducts::Trans::NoTranspose, TeamProducts::Algo::Gemv::Unblocked> {};

/// sums = tile * x, by all threads of the team. Views are in memory of the team's space.
template <BatchLoop Loop, class Team, class Tile, class Input, class Sums>
KOKKOS_INLINE_FUNCTION void batchedGemv(const Team& member, const Tile& tile, const Input& x, const Sums& sums) {
  using Value = typename Sums::non_const_value_type;
  BatchedGemv<Loop, Team>::invoke(member, Value(1.0), tile, x, Value(0.0), sums);
}
#else
constexpr bool kokkosBatchedIsThere = false;

template <BatchLoop Loop, class Team, class Tile, class Input, class Sums>
KOKKOS_INLINE_FUNCTION void batchedGemv(const Team&, const Tile&, const Input&, const Sums&) {}
#endif

}  // namespace Komvos::Impl
