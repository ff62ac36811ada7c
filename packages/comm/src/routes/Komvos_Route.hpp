/// \file Komvos_Route.hpp
/// How one value travels from its owner to a destination.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "Komvos_NodeTopology.hpp"
#include "Komvos_Pattern.hpp"
#include "Komvos_SetupTransport.hpp"

namespace Komvos {

/// A rule of hops. The plan builder does everything else, the same for every route.
class Route {
 public:
  virtual ~Route() = default;

  virtual std::string name() const = 0;

  /// The most hops any value takes.
  virtual int numStages() const = 0;

  /// Whether every value goes straight to its destination, in one stage. Then both ends know the messages from their
  /// patterns, and nobody is asked for hops: a class derived from StandardRoute that has hops of its own says false.
  virtual bool isDirect() const { return false; }

  /// Agrees on what the rule needs to know about this halo, if anything.
  /// \param patterns one for each rank the transport plays; they fit each other, and what the route knows of nodes is
  /// the same on all ranks: else ranks may wait for each other for ever
  /// \note Collective on the transport.
  virtual void prepare(SetupTransport& transport, const std::vector<Pattern>& patterns) {
    static_cast<void>(transport);
    static_cast<void>(patterns);
  }

  /// Whom set-up messages of one stage come from and go to.
  struct Peers {
    std::vector<int> sources;  ///< each sends one message, which may be empty; ascending
    std::vector<int> expects;  ///< these wait for a message, even if there is nothing for them; ascending
  };

  /// Whether peers() knows this stage after prepare(), the same on all ranks. If not, ranks find their senders by
  /// consensus, which takes several times as long.
  virtual bool knowsPeers(int stage) const {
    static_cast<void>(stage);
    return false;
  }

  /// The peers of `pattern.rank` in a stage that knowsPeers(). A rank sends to no other than those that list it among
  /// their sources; of those, only the ranks that it would not write to anyway need be among its `expects`.
  virtual Peers peers(int stage, const Pattern& pattern) const {
    static_cast<void>(stage);
    static_cast<void>(pattern);
    return {};
  }

  /// Where the value goes next.
  /// \param stage       0 .. numStages()-1
  /// \param here        the rank that holds it now
  /// \param origin      its owner
  /// \param destination the rank that needs it; here != destination
  /// \return `here` to keep it for a later stage. After the last stage it must have reached `destination`.
  virtual int hop(int stage, int here, int origin, int destination) const = 0;
};

/// Every value goes straight to every rank that needs it: Algorithm 1 of Bienz, Gropp and Olson, and what Tpetra does.
class StandardRoute : public Route {
 public:
  std::string name() const override { return "standard"; }
  int numStages() const override { return 1; }
  bool isDirect() const override { return true; }
  int hop(int, int, int, int destination) const override { return destination; }
};

}  // namespace Komvos
