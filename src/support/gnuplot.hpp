/// \file gnuplot.hpp
/// Plots drawn by the program gnuplot, which runs as a child process. Used by one rank.
#pragma once

#include <string>

namespace Komvos::Program::Gnuplot {

/// To be called before the work whose results are plotted.
/// \param option the option that asks for the plot, as "--plot"; for the error
/// \throws BadInput if gnuplot is not in the PATH
void requireInstalled(const std::string& option);

/// Runs `script` and writes what it plots as an SVG file, as a whole or not at all. The same script gives the same
/// file.
/// \param script gnuplot commands to follow `set terminal`; texts are plain, not in gnuplot's markup
/// \throws BadInput if the file cannot be written
/// \throws Error with gnuplot's message if the script fails
void drawSvg(const std::string& path, int width, int height, const std::string& script);

/// `text` as a string of a script.
std::string quoted(const std::string& text);

}  // namespace Komvos::Program::Gnuplot
