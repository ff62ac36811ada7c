/// \file Komvos_SectionFile.hpp
/// Binary files of named lists with checksums. What is read from them is not trusted.
///
/// A file is a header, then sections. Numbers are as the machine has them in memory, so files do not go from one byte
/// order to the other.
///
///     header    magic [8 bytes], byte order mark 0x01020304, version, scalar, 0 [4 bytes each]
///     section   name [8 bytes, filled up with 0], bytes of an element, number of elements [8 bytes each], the elements
///
/// A section named "checksum" has the Checksum of all bytes before its one element. Whoever reads a file looks at one
/// before he makes use of the sections above it.
#pragma once

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <type_traits>
#include <vector>

namespace Komvos::Impl {

/// Of bytes, however they are cut into pieces. Four lanes of words of 64 bits; for each word
///
///     lane = rotate((lane xor word) * prime, 29)
///
/// which can be undone, as can all that follows: two lists that differ within one lane only, as by one byte, never have
/// the same checksum. Not meant against those who want them to.
class Checksum {
 public:
  void add(const void* bytes, std::size_t count);
  std::uint64_t value() const;

 private:
  static constexpr std::size_t blockBytes = 32;

  void addBlocks(const unsigned char* bytes, std::size_t count);

  std::array<std::uint64_t, 4> lanes_{0x9e3779b97f4a7c15, 0xc2b2ae3d27d4eb4f, 0x165667b19e3779f9, 0x27d4eb2f165667c5};
  std::array<unsigned char, blockBytes> rest_{};  ///< bytes that do not make a block yet
  std::size_t numRest_ = 0;
  std::uint64_t total_ = 0;
};

/// How a scalar is written in a header.
template <class Scalar>
constexpr std::uint32_t fileScalar() {
  return std::is_same_v<Scalar, float>                  ? 1
         : std::is_same_v<Scalar, double>               ? 2
         : std::is_same_v<Scalar, std::complex<double>> ? 3
         : std::is_same_v<Scalar, std::complex<float>>  ? 4
                                                        : 0;
}

/// What a header says.
struct FileKind {
  const char* magic;  ///< 8 characters
  std::uint32_t version;
  std::uint32_t scalar;
};

class SectionWriter {
 public:
  /// Writes the header. \throws BadInput, as all that follows, if writing fails
  /// \param where for errors: which function writes what
  SectionWriter(std::ostream& out, const FileKind& kind, std::string where);

  template <class T>
  void section(const char* name, const std::vector<T>& values) {
    static_assert(std::is_trivially_copyable_v<T>);
    beginSection(name, sizeof(T), values.size());
    write(values.data(), values.size() * sizeof(T));
  }
  /// All elements have to be written next.
  void beginSection(const char* name, std::size_t bytesOfElement, std::size_t count);
  void write(const void* bytes, std::size_t count);
  void writeZeros(std::size_t count);
  /// Of everything until here. All of it is with the stream then.
  void writeChecksum();

 private:
  void flush();

  std::ostream& out_;
  std::string where_;
  Checksum checksum_;
  std::vector<unsigned char> buffer_;
  std::size_t used_ = 0;
};

/// All functions throw BadInput if the file is not what they expect.
class SectionReader {
 public:
  /// Reads the header.
  /// \param in of a file, or a string: one can look where it ends
  /// \param where for errors: which function reads what
  SectionReader(std::istream& in, const FileKind& kind, std::string where);

  template <class T>
  std::vector<T> section(const char* name) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::vector<T> values(openSection(name, sizeof(T)));
    read(values.data(), values.size() * sizeof(T));
    return values;
  }
  /// \return the number of elements; the stream has that many. They have to be read next.
  std::size_t openSection(const char* name, std::size_t bytesOfElement);
  void read(void* bytes, std::size_t count);
  /// Compares the next section with what was read until there.
  void requireChecksum();

  /// Of the stream.
  std::int64_t bytesLeft() const { return left_; }
  [[noreturn]] void fail(const std::string& what) const;

 private:
  std::istream& in_;
  std::string where_;
  Checksum checksum_;
  std::int64_t left_ = 0;
};

}  // namespace Komvos::Impl
