/// \file halo_report.hpp
/// The times of a halo as a table and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "bench/halo_bench.hpp"

namespace Komvos::Program {

/// A table with one line for each variant.
std::string toText(const HaloTimes& times);

/// {"name", "rows", "entries", "neighbours_max", "best_baseline", "variants": [...]}; gains are ratios of times within
/// a sample, over the fastest baseline.
nlohmann::ordered_json toJson(const HaloTimes& times);

}  // namespace Komvos::Program
