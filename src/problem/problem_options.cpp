#include "problem/problem_options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <charconv>

#include "Komvos_Error.hpp"

namespace Komvos::Program {

namespace {

/// "12" or "12,8,4".
std::vector<long long> parseSize(const std::string& text) {
  std::vector<long long> size;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    long long number = 0;
    const auto [next, error] = std::from_chars(at, end, number);
    if (error != std::errc() || number < 1 || (next != end && *next != ',')) {
      throw BadInput("--n " + text + ": must be one to three positive numbers, as in 12 or 12,8,4");
    }
    size.push_back(number);
    if (next == end) {
      return size;
    }
    at = next + 1;
  }
}

/// "komvos bench halo": as the user wrote it.
std::string fullName(const CLI::App& command) {
  const CLI::App* const parent = command.get_parent();
  return (parent != nullptr && parent->get_parent() != nullptr ? parent->get_name() + " " : "") + command.get_name();
}

}  // namespace

void addProblemOptions(CLI::App& command, ProblemOptions& options) {
  command.add_option("MATRIX", options.matrixFile, "Matrix Market file: coordinate, real or integer, square");
  command.add_option("--problem", options.problem, "generate a problem instead of reading one")
      ->check(CLI::IsMember({"laplace3d", "poisson3d", "convection3d", "groundwater3d", "elasticity3d",
                             "rotated-anisotropic2d", "random"}));
  command
      .add_option_function<std::string>(
          "--n", [&options](const std::string& text) { options.size = parseSize(text); },
          "its number of points in each direction; for random the number of rows")
      ->type_name("N[,NY[,NZ]]");
  command.add_option("--entries", options.entriesPerRow, "entries per row of random (default 50)")
      ->check(CLI::Range(1, 100000));
}

void checkProblemOptions(const CLI::App& command, ProblemOptions& options) {
  const std::string name = fullName(command);
  const auto given = [&command](const char* option) { return command.count(option) > 0; };
  const auto require = [](bool holds, const std::string& error) {
    if (!holds) {
      throw BadInput(error);
    }
  };
  const bool generated = given("--problem");
  require(generated || given("MATRIX"),
          name + ": needs a Matrix Market file or --problem (see komvos " + name + " --help)");
  require(!generated || !given("MATRIX"), name + ": both a file (" + options.matrixFile + ") and --problem are given");
  require(!generated || given("--n"), name + ": --problem " + options.problem + " needs --n");
  require(generated || !given("--n"), name + ": --n goes with --problem only");
  require(options.problem == "random" || !given("--entries"), name + ": --entries goes with --problem random only");
  const std::size_t directions = options.problem == "random" ? 1 : options.problem == "rotated-anisotropic2d" ? 2 : 3;
  require(options.size.size() <= 1 || options.size.size() == directions,
          name + ": --n has " + std::to_string(options.size.size()) + " numbers, " + options.problem + " takes 1" +
              (directions > 1 ? " or " + std::to_string(directions) : ""));
  if (generated) {
    options.size.resize(directions, options.size.front());
  }
}

std::vector<std::string> splitRoutes(const std::string& text) {
  std::vector<std::string> routes;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string piece = text.substr(begin, end - begin);
    if (!routes.empty() && !piece.empty() && std::isdigit(static_cast<unsigned char>(piece[0])) != 0) {
      routes.back() += "," + piece;
    } else {
      routes.push_back(piece);
    }
    begin = end + 1;
  }
  return routes;
}

}  // namespace Komvos::Program
