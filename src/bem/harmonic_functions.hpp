/// \file harmonic_functions.hpp
/// Potentials that are known everywhere.
#pragma once

#include <string>
#include <vector>

#include "Komvos_Point3.hpp"

namespace Komvos::Program {

/// Their names.
inline std::vector<std::string> harmonicFunctions() { return {"1", "x", "y", "z", "xy", "yz", "zx", "x2-z2"}; }

/// \param name one of harmonicFunctions()
inline double harmonicValue(const std::string& name, const Point3& p) {
  return name == "1"    ? 1
         : name == "x"  ? p.x
         : name == "y"  ? p.y
         : name == "z"  ? p.z
         : name == "xy" ? p.x * p.y
         : name == "yz" ? p.y * p.z
         : name == "zx" ? p.z * p.x
                        : p.x * p.x - p.z * p.z;
}

}  // namespace Komvos::Program
