#include "ping_pong.hpp"

#include <unistd.h>

#include <algorithm>

#include "Komvos_Error.hpp"

namespace Komvos::Program {

namespace {

const int tag = 0;

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

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

int samplesFor(long bytes, int samples) {
  const long few = std::min(samples, 10);
  const long all = samples;
  return static_cast<int>(std::clamp(all * (256 << 10) / bytes, few, all));
}

/// The buffers and the peer of one rank that takes part.
class Player {
 public:
  Player(MPI_Comm comm, Role role, long maxBytes)
      : comm_(comm), role_(role), out_(static_cast<std::size_t>(maxBytes), 'o'), in_(out_) {}

  /// \return half of a round trip in seconds, for the one who serves
  double bounce(long bytes, int samples) {
    const int warmUps = 2 + samples / 10;
    std::vector<double> times;
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
    return role_.serves ? median(std::move(times)) : 0;
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

/// The maximum over ranks; those that wait leave the cores to the others.
double restfulMax(MPI_Comm comm, double value) {
  double max = 0;
  MPI_Request request;
  mpiCheck(MPI_Iallreduce(&value, &max, 1, MPI_DOUBLE, MPI_MAX, comm, &request), "MPI_Iallreduce");
  for (int done = 0; done == 0;) {
    mpiCheck(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (done == 0) {
      usleep(200);
    }
  }
  return max;
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
  std::vector<MeasuredSeries::Point> points;
  for (std::size_t i = 0; i < settings.sizes.size(); ++i) {
    onSize(static_cast<int>(i));
    const long bytes = settings.sizes[i];
    double seconds = 0;
    if (plays) {
      mpiCheck(MPI_Barrier(players), "MPI_Barrier");
      seconds = player.bounce(bytes, samplesFor(bytes, settings.samples));
    }
    points.push_back({bytes, restfulMax(comm, seconds)});
  }
  if (plays) {
    mpiCheck(MPI_Comm_free(&players), "MPI_Comm_free");
  }
  return points;
}

}  // namespace Komvos::Program
