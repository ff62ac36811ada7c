/// \file Komvos_SetupTransport.hpp
/// How set-up messages travel: between MPI ranks, or between virtual ranks inside one process.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace Komvos {

namespace Impl {
class PrivateComm;
}

/// A set-up message: some integers for one other rank.
struct SetupMessage {
  int peer;  ///< destination when sent, source when received
  std::vector<int> data;
};

/// Runs set-up algorithms in supersteps. The algorithm keeps one state for each rank this process plays: one rank
/// under MPI, all of them in memory. It is written once, so that a plan made for 32,768 virtual ranks is made by the
/// code that makes it on a cluster.
class SetupTransport {
 public:
  virtual ~SetupTransport() = default;

  /// Ranks of the whole (real or virtual) communicator.
  virtual int numRanks() const = 0;
  /// The ranks this process plays, ascending.
  virtual const std::vector<int>& myRanks() const = 0;

  /// Delivers outbox[i], written by myRanks()[i], and returns what arrived for each, ordered by source. A rank sends
  /// at most one message to a peer; receivers need not know their senders.
  /// \note Collective.
  virtual std::vector<std::vector<SetupMessage>> exchange(std::vector<std::vector<SetupMessage>> outbox) = 0;

  /// The same where receivers know their senders: rank myRanks()[i] gets one message from each of sources[i], which are
  /// ascending. Ranks wait for these only, so it is cheaper. They must match: in memory others are an error, under MPI
  /// ranks may wait for ever.
  virtual std::vector<std::vector<SetupMessage>> exchangeKnown(std::vector<std::vector<SetupMessage>> outbox,
                                                               const std::vector<std::vector<int>>& sources) = 0;

  /// The sums of `mine` over all processes, modulo 2^64; equally many numbers on all. \note Collective.
  virtual std::vector<std::uint64_t> sum(std::vector<std::uint64_t> mine) = 0;

  /// Throws BadInput on all processes if `error` is not empty on one of them. \note Collective.
  virtual void throwOnAllIfAny(const std::string& error) = 0;
};

/// Real ranks. exchange() finds the senders by non-blocking consensus (NBX: synchronous sends, probes, a barrier),
/// so no array has the length of the communicator and only real messages are sent. T. Hoefler, C. Siebert,
/// A. Lumsdaine, "Scalable communication protocols for dynamic sparse data exchange", PPoPP 2010.
class MpiSetupTransport : public SetupTransport {
 public:
  /// \note Collective on `comm` on first use.
  explicit MpiSetupTransport(MPI_Comm comm);
  int numRanks() const override;
  const std::vector<int>& myRanks() const override { return me_; }
  std::vector<std::vector<SetupMessage>> exchange(std::vector<std::vector<SetupMessage>> outbox) override;
  std::vector<std::vector<SetupMessage>> exchangeKnown(std::vector<std::vector<SetupMessage>> outbox,
                                                       const std::vector<std::vector<int>>& sources) override;
  std::vector<std::uint64_t> sum(std::vector<std::uint64_t> mine) override;
  void throwOnAllIfAny(const std::string& error) override;

  /// Messages this rank has sent so far: the cost of set-up.
  long messagesSent() const { return messagesSent_; }

 private:
  std::vector<MPI_Request> startSends(const std::vector<SetupMessage>& out, int tag, bool synchronous);

  std::shared_ptr<Impl::PrivateComm> comm_;
  std::vector<int> me_;
  long messagesSent_ = 0;
};

/// All ranks of a virtual machine, played by this process. No MPI.
class InMemorySetupTransport : public SetupTransport {
 public:
  explicit InMemorySetupTransport(int numRanks);
  int numRanks() const override { return static_cast<int>(all_.size()); }
  const std::vector<int>& myRanks() const override { return all_; }
  std::vector<std::vector<SetupMessage>> exchange(std::vector<std::vector<SetupMessage>> outbox) override;
  std::vector<std::vector<SetupMessage>> exchangeKnown(std::vector<std::vector<SetupMessage>> outbox,
                                                       const std::vector<std::vector<int>>& sources) override;
  std::vector<std::uint64_t> sum(std::vector<std::uint64_t> mine) override;
  void throwOnAllIfAny(const std::string& error) override;

 private:
  std::vector<int> all_;
};

}  // namespace Komvos
