/// \file Komvos_Combine.hpp
/// What happens to a target entry when its value arrives.
#pragma once

namespace Komvos {

/// How an arriving value is combined with the entry that is there; in the reverse direction also how several copies of
/// one entry are combined on their way to its owner.
enum class Combine {
  insert,  ///< the value replaces the entry; of several copies the one of the highest rank wins, and of copies of one
           ///< rank the one with the highest target index
  add,     ///< the entry plus the value; copies are summed
  absMax   ///< the larger magnitude of both; of copies the largest
};

}  // namespace Komvos
