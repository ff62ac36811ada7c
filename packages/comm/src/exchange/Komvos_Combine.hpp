/// \file Komvos_Combine.hpp
/// What happens to a target entry when its value arrives.
#pragma once

namespace Komvos {

/// Of a value that arrives with the entry that is there, and in the reverse direction of several copies of one entry on
/// their way to its owner.
enum class Combine {
  insert,  ///< the value replaces the entry; of several copies the one of the highest rank wins, and of copies of one
           ///< rank the one with the highest target index
  add,     ///< the entry plus the value; copies are summed
  absMax   ///< the larger magnitude of both; of copies the largest
};

}  // namespace Komvos
