/// \file bem_options.hpp
/// The command line of `komvos bem`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "support/exchange_choice.hpp"

namespace CLI {
class App;
}

namespace Komvos::Program {

struct BemOptions : ExchangeChoice {
  std::string meshFile;   ///< empty if a shape is generated
  std::string meshGroup;  ///< empty: the whole file
  std::string geometry;   ///< empty if a mesh is read
  int triangles = 0;
  double radius = 0;    ///< 0: that of the generator
  double height = 4;    ///< of the cylinder
  double distance = 1;  ///< of the centres of spheres
  int perSide = 3;      ///< spheres of an array
  std::string kernel = "laplace-single-layer";
  double kappa = 0;
  double wavenumber = 0;
  std::string problem;  ///< "potential", "uniform-field", "interior", or "none" for products only; empty: by the kernel
  std::vector<double> potentials;      ///< V, one for each body or one for all; empty: by the geometry
  std::vector<double> field{0, 0, 1};  ///< V/m
  std::string boundaryValue = "z";     ///< a harmonic function
  bool capacitanceMatrix = false;
  double accuracy = 1e-4;
  double eta = 2;
  int leafSize = 32;
  std::string approximation = "aca";
  std::string clusterSplit = "longest-side";
  std::string storage = "reduced";
  std::string solver;            ///< empty: auto, or none where there is no problem
  std::string variant = "auto";  ///< of pipelined-bicgstab
  double tolerance = 1e-6;
  int maxIterations = 1000;
  std::string preconditioner = "diagonal";
  int products = 20;
  std::string densityFile;
  std::string blockPlotFile;
  std::string convergencePlotFile;
  std::string jsonFile;
  bool quiet = false;

  bool solves() const { return solver != "none"; }
};

/// Adds the subcommand; parsing fills `options`, which must outlive `app`.
CLI::App& addBemCommand(CLI::App& app, BemOptions& options);

/// What CLI11 cannot see by itself; fills in what was left open. \throws BadInput
void checkBemOptions(const CLI::App& command, BemOptions& options);

}  // namespace Komvos::Program
