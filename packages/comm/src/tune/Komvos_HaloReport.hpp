/// \file Komvos_HaloReport.hpp
/// What was considered and chosen for a halo.
#pragma once

#include <string>
#include <vector>

#include "Komvos_IntraNode.hpp"
#include "Komvos_Pairing.hpp"
#include "Komvos_RouteChoice.hpp"
#include "Komvos_Traffic.hpp"

namespace Komvos {

/// A variant that was considered for a halo: a route, and what carries values between ranks of a node.
struct HaloCandidate {
  RouteChoice route;
  IntraNode intraNode = IntraNode::messages;
  Traffic traffic;
  // The cost of making the plan of the route, the most on any rank.
  double buildSeconds = 0;
  long buildMessages = 0;
  long planBytes = 0;
  /// Of one exchange of one column of double; 0 without a model. With shared memory on the nodes: of the messages
  /// between nodes only, because the model knows no shared memory.
  double modelledSeconds = 0;
  /// Median of the maximum over ranks, of the last round it took part in; 0 if it was not measured.
  double measuredSeconds = 0;
  std::string rejectionReason;  ///< empty for the one that was chosen
};

/// How another variant did while the halo was used, against the one in use then.
struct HaloTrial {
  RouteChoice route;
  IntraNode intraNode = IntraNode::messages;
  int columns = 1;    ///< decided together: 1; 2 and 3; 4 and more. This is the least
  long firstUse = 0;  ///< counted from 1
  long lastUse = 0;
  /// Median of the maximum over ranks, of all that the user waited for; 0 for a trial that was broken off, because
  /// vectors had other numbers of columns meanwhile, or ranks failed.
  double seconds = 0;
  double secondsInUse = 0;  ///< of the variant in use
  std::string outcome;      ///< "faster": in use from then on; "not clearly faster", "given up" or "broken off"
};

/// The choice for one halo, the same on all ranks. Where it is tuned online, as things are at the moment.
struct HaloReport {
  std::string route;                          ///< in use
  Pairing pairing = Pairing::byVolume;        ///< of the chosen route
  IntraNode intraNode = IntraNode::messages;  ///< in use; a node that has no shared memory uses messages all the same
  Traffic standard;                           ///< of the standard route
  Traffic chosen;                             ///< of the route in use
  std::string reverseRoute;                   ///< of exchanges in the reverse direction
  double setupSeconds = 0;                    ///< of planHalo, maximum over ranks; measuring included
  /// Median seconds of one exchange of one column of double, maximum over ranks; 0 where nothing was measured. The
  /// first is that of the standard route by messages.
  double standardSeconds = 0;
  double chosenSeconds = 0;
  bool decisionReused = false;   ///< taken over from a halo of the same pattern that was tuned before
  bool beganAsSimilar = false;   ///< began as a tuning cache guesses, or as a similar halo was decided before
  bool beganAsForecast = false;  ///< began along another route than the standard one, which promised much
  bool fromTuningCache = false;  ///< as the tuning cache says
  std::string tuningCacheNote;   ///< why the tuning cache does not say it; empty if it does, or if there is none

  // Of online tuning:
  bool online = false;
  std::vector<HaloTrial> trials;
  long uses = 0;             ///< imports and products so far
  long settledAt = 0;        ///< the use after which nothing was left to try; 0 if there still is
  double tuningSeconds = 0;  ///< planning, and what slower variants took longer; maximum over ranks
  std::vector<HaloCandidate> candidates;
};

/// A table for people: one line for each candidate, with its cost and why it was rejected; * marks the chosen one.
std::string describe(const HaloReport& report);

}  // namespace Komvos
