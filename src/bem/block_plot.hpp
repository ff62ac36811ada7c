/// \file block_plot.hpp
/// A picture of the blocks of a hierarchical matrix.
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

#include "Komvos_BlockTree.hpp"

namespace Komvos::Program {

/// The blocks of all ranks, on rank 0. \note Collective on `comm`.
std::vector<Block> gatherBlocks(const std::vector<Block>& mine, MPI_Comm comm);

/// Writes an SVG file: dense blocks in one colour, those of low rank darker with their rank, which is written into
/// large ones. Of more than 50,000 blocks, the smallest sizes are left out, which the picture says.
/// \param blocks as they are stored: isAdmissible if of low rank
/// \param title for people \throws BadInput if the file cannot be written
void drawBlocks(const std::string& path, std::vector<Block> blocks, int unknowns, const std::string& title);

}  // namespace Komvos::Program
