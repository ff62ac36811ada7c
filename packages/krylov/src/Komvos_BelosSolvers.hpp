/// \file Komvos_BelosSolvers.hpp
/// Makes Belos' factories know our solvers.
#pragma once

namespace Komvos {

/// From now on Belos::SolverFactory and Belos::TpetraSolverFactory create PipelinedBiCGStab for the name
/// "PIPELINED BICGSTAB", in any case, for all types that it is instantiated for. Call it once, or more often; on as
/// many ranks as use it. Not from several threads at once.
void registerBelosSolvers();

}  // namespace Komvos
