/// \file shared_folder.hpp
/// Where the tests on many ranks keep their files.
#pragma once

#include <gtest/gtest.h>
#include <mpi.h>

#include <Tpetra_Core.hpp>
#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string>
#include <system_error>

namespace Komvos::test {

/// A folder that all ranks see, while this object lives. \note Collective.
class SharedFolder {
 public:
  SharedFolder() {
    std::array<char, 200> path{};
    if (rank() == 0) {
      const std::string name = (std::filesystem::temp_directory_path() / "komvos-hmatrix-XXXXXX").string();
      std::copy(name.begin(), name.end(), path.begin());
      EXPECT_NE(mkdtemp(path.data()), nullptr);
    }
    MPI_Bcast(path.data(), static_cast<int>(path.size()), MPI_CHAR, 0, MPI_COMM_WORLD);
    path_ = path.data();
  }
  ~SharedFolder() {
    MPI_Barrier(MPI_COMM_WORLD);
    std::error_code ignored;
    if (rank() == 0) {
      std::filesystem::remove_all(path_, ignored);
    }
  }
  static int rank() { return Tpetra::getDefaultComm()->getRank(); }
  static int size() { return Tpetra::getDefaultComm()->getSize(); }
  std::string prefix(const std::string& name) const { return (path_ / name).string(); }
  /// The file of a rank.
  static std::filesystem::path fileOf(const std::string& prefix, int rank) {
    return prefix + ".rank" + std::to_string(rank) + ".komvos-hmatrix";
  }
  /// \note Collective.
  std::size_t numFiles() const {
    MPI_Barrier(MPI_COMM_WORLD);
    const auto count = std::distance(std::filesystem::directory_iterator(path_), {});
    MPI_Barrier(MPI_COMM_WORLD);
    return static_cast<std::size_t>(count);
  }

 private:
  std::filesystem::path path_;
};

}  // namespace Komvos::test
