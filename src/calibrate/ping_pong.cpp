#include "calibrate/ping_pong.hpp"

#include <unistd.h>

#include <algorithm>

#include "Komvos_Error.hpp"
#include "Komvos_Statistics.hpp"

namespace Komvos::Program {

namespace {

const int tag = 0;
const int rounds = 5;  // through all sizes, so that a disturbance does not hit one size only

/// This rank's part in the pairs.
struct Role {
  int peer = -1;        ///< -1: none
  bool serves = false;  ///< sends first, and takes the time
};

Role roleOf(int rank, const std::vector<std::pair<int, int>>& pairs) {
  for (const auto& [first, second] : pairs) {
    if (rank == first) {
      return {second, true};
    }
    if (rank == second) {
      return {first, false};
    }
  }
  return {};
}

/// Fewer of large messages, but at least one.
int samplesInRound(long bytes, int samples) {
  const long few = std::min(samples, 10);
  const long all = samples;
  const long total = std::clamp(all * (256 << 10) / bytes, few, all);
  return static_cast<int>((total + rounds - 1) / rounds);
}

/// The buffers and the peer of one rank that takes part.
class Player {
 public:
  Player(MPI_Comm comm, Role role, long maxBytes)
      : comm_(comm), role_(role), out_(static_cast<std::size_t>(maxBytes), 'o'), in_(out_) {}

  /// Appends half the time of each round trip, in seconds.
  void bounce(long bytes, int samples, std::vector<double>& times) {
    const int warmUps = 2 + samples / 10;
    for (int sample = -warmUps; sample < samples; ++sample) {
      const double start = MPI_Wtime();
      if (role_.serves) {
        send(bytes);
        receive(bytes);
      } else {
        receive(bytes);
        send(bytes);
      }
      if (sample >= 0) {
        times.push_back((MPI_Wtime() - start) / 2);
      }
    }
  }

 private:
  void send(long bytes) {
    mpiCheck(MPI_Send(out_.data(), static_cast<int>(bytes), MPI_CHAR, role_.peer, tag, comm_), "MPI_Send");
  }
  void receive(long bytes) {
    mpiCheck(MPI_Recv(in_.data(), static_cast<int>(bytes), MPI_CHAR, role_.peer, tag, comm_, MPI_STATUS_IGNORE),
             "MPI_Recv");
  }

  MPI_Comm comm_;
  Role role_;
  std::vector<char> out_, in_;
};

/// A barrier that leaves the cores to those who are still at work: looks seldom, and more seldom the longer it takes.
void rest(MPI_Comm comm) {
  MPI_Request request;
  mpiCheck(MPI_Ibarrier(comm, &request), "MPI_Ibarrier");
  int done = 0;
  mpiCheck(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
  for (useconds_t pause = 200; done == 0; pause = std::min<useconds_t>(2 * pause, 5000)) {
    usleep(pause);
    mpiCheck(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
  }
}

}  // namespace

std::vector<long> messageSizes(long maxBytes) {
  std::vector<long> sizes;
  for (long size = 8; size <= maxBytes; size *= 2) {
    sizes.push_back(size);
    if (size >= 16 && size + size / 2 <= maxBytes) {
      sizes.push_back(size + size / 2);
    }
  }
  return sizes;
}

std::vector<MeasuredSeries::Point> pingPong(MPI_Comm comm, const std::vector<std::pair<int, int>>& pairs,
                                            const PingPongSettings& settings, const std::function<void(int)>& onSize) {
  int rank = 0;
  mpiCheck(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
  const Role role = roleOf(rank, pairs);
  const bool plays = role.peer >= 0;
  MPI_Comm players = MPI_COMM_NULL;
  mpiCheck(MPI_Comm_split(comm, plays ? 0 : MPI_UNDEFINED, rank, &players), "MPI_Comm_split");
  Player player(comm, role, plays ? settings.sizes.back() : 0);
  const std::size_t count = settings.sizes.size();
  std::vector<std::vector<double>> times(count);
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < count; ++i) {
      onSize(static_cast<int>(i));
      if (plays) {
        mpiCheck(MPI_Barrier(players), "MPI_Barrier");
        player.bounce(settings.sizes[i], samplesInRound(settings.sizes[i], settings.samples), times[i]);
      }
      rest(comm);
    }
  }
  if (plays) {
    mpiCheck(MPI_Comm_free(&players), "MPI_Comm_free");
  }
  std::vector<double> seconds(count, 0.0);
  if (role.serves) {
    std::transform(times.begin(), times.end(), seconds.begin(), Impl::median);
  }
  mpiCheck(MPI_Allreduce(MPI_IN_PLACE, seconds.data(), static_cast<int>(count), MPI_DOUBLE, MPI_MAX, comm),
           "MPI_Allreduce");
  std::vector<MeasuredSeries::Point> points;
  for (std::size_t i = 0; i < count; ++i) {
    points.push_back({settings.sizes[i], seconds[i]});
  }
  return points;
}

}  // namespace Komvos::Program
