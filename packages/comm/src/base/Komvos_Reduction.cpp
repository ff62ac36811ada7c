#include "Komvos_Reduction.hpp"

#include <mpi.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "Komvos_Error.hpp"
#include "Komvos_PrivateComm.hpp"

// How this works. All numbers travel as one element of an MPI type: how many maxima there are, these, then the sums. An
// MPI operation of our own reduces both parts; since the element is one, MPI never hands it a piece. Numbers that are
// not negative are in the order of their bits, whether integer or floating-point; a minimum is the maximum of
// complements.
namespace Komvos::Impl {

namespace {

using Word = std::uint64_t;

void combine(void* in, void* inOut, int* length, MPI_Datatype* type) {
  int bytes = 0;
  MPI_Type_size(*type, &bytes);
  const int words = bytes / static_cast<int>(sizeof(Word));
  const Word* from = static_cast<const Word*>(in);
  Word* to = static_cast<Word*>(inOut);
  for (int element = 0; element < *length; ++element, from += words, to += words) {
    const int firstSum = 1 + static_cast<int>(from[0]);
    for (int i = 1; i < firstSum; ++i) {
      to[i] = std::max(to[i], from[i]);
    }
    for (int i = firstSum; i < words; ++i) {
      to[i] += from[i];
    }
  }
}

struct Operation {
  MPI_Op handle = MPI_OP_NULL;
  Operation() { mpiCheck(MPI_Op_create(combine, 1, &handle), "MPI_Op_create"); }
  ~Operation() { MPI_Op_free(&handle); }
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;
};

Word wordAt(const void* number) {
  Word word = 0;
  std::memcpy(&word, number, sizeof word);
  return word;
}

void setWord(void* number, Word word) { std::memcpy(number, &word, sizeof word); }

}  // namespace

void Reduction::run(PrivateComm& comm) {
  std::vector<Word> words{maxima_.size() + minima_.size()};
  for (const void* number : maxima_) {
    words.push_back(wordAt(number));
  }
  for (const void* number : minima_) {
    words.push_back(~wordAt(number));
  }
  for (const void* number : sums_) {
    words.push_back(wordAt(number));
  }
  const MPI_Op operation = comm.attached<Operation>([] { return std::make_shared<Operation>(); }).handle;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  mpiCheck(MPI_Type_contiguous(static_cast<int>(words.size()), MPI_UINT64_T, &type), "MPI_Type_contiguous");
  mpiCheck(MPI_Type_commit(&type), "MPI_Type_commit");
  const int code = MPI_Allreduce(MPI_IN_PLACE, words.data(), 1, type, operation, comm.get());
  MPI_Type_free(&type);
  mpiCheck(code, "MPI_Allreduce");
  const Word* word = words.data() + 1;
  for (void* number : maxima_) {
    setWord(number, *word++);
  }
  for (void* number : minima_) {
    setWord(number, ~*word++);
  }
  for (void* number : sums_) {
    setWord(number, *word++);
  }
}

}  // namespace Komvos::Impl
