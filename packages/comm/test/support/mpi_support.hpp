/// \file mpi_support.hpp
/// What tests on several ranks share: who and how many they are, errors that must be the same everywhere, and the
/// environment.
#pragma once

#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdlib>
#include <functional>
#include <optional>
#include <string>

#include "Komvos_Error.hpp"

namespace KomvosTest {

inline int worldRank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

inline int worldSize() {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

/// The text of rank 0.
inline std::string textOfRankZero(std::string text) {
  int length = static_cast<int>(text.size());
  MPI_Bcast(&length, 1, MPI_INT, 0, MPI_COMM_WORLD);
  text.resize(length);
  MPI_Bcast(text.data(), length, MPI_CHAR, 0, MPI_COMM_WORLD);
  return text;
}

/// Runs `work` and expects BadInput with one text on all ranks. \return the text
inline std::string commonError(const std::string& what, const std::function<void()>& work) {
  std::string text = "no error";
  try {
    work();
  } catch (const Komvos::BadInput& error) {
    text = error.what();
  } catch (const std::exception& error) {
    text = std::string("another exception: ") + error.what();
  }
  EXPECT_EQ(textOfRankZero(text), text) << what;
  EXPECT_NE("no error", text) << what;
  EXPECT_EQ(std::string::npos, text.find("another exception")) << what;
  return text;
}

/// Sets an environment variable for as long as it lives.
class Variable {
 public:
  Variable(const std::string& name, const std::string& value) : name_(name) {
    if (const char* const before = std::getenv(name.c_str())) {
      before_ = before;
    }
    setenv(name.c_str(), value.c_str(), 1);
  }
  ~Variable() { before_ ? setenv(name_.c_str(), before_->c_str(), 1) : unsetenv(name_.c_str()); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  std::string name_;
  std::optional<std::string> before_;
};

}  // namespace KomvosTest
