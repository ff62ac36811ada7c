/// \file Komvos_SectionFile.cpp
#include "Komvos_SectionFile.hpp"

#include <algorithm>
#include <cstring>
#include <istream>
#include <ostream>
#include <utility>

#include "Komvos_Error.hpp"

namespace Komvos::Impl {

namespace {

constexpr std::size_t magicBytes = 8, nameBytes = 8;
constexpr std::uint32_t byteOrderMark = 0x01020304, otherByteOrder = 0x04030201;
constexpr std::size_t pieceBytes = std::size_t{1} << 20;  // stays in a cache between the checksum and the copy
constexpr const char* checksumName = "checksum";

struct Header {
  char magic[magicBytes];
  std::uint32_t byteOrder, version, scalar, nothing;
};
static_assert(sizeof(Header) == 24);

struct SectionHeader {
  char name[nameBytes];
  std::uint64_t bytesOfElement, count;
};
static_assert(sizeof(SectionHeader) == 24);

std::uint64_t rotated(std::uint64_t word, int bits) { return word << bits | word >> (64 - bits); }

SectionHeader sectionHeader(const char* name, std::size_t bytesOfElement, std::size_t count) {
  SectionHeader header{{}, bytesOfElement, count};
  std::memcpy(header.name, name, std::min(std::strlen(name), nameBytes));
  return header;
}

/// For messages, also of names that nobody gave.
std::string printable(const char* name, std::size_t length) {
  std::string text;
  for (std::size_t i = 0; i < length && name[i] != 0; ++i) {
    text += name[i] > ' ' && name[i] < 127 ? name[i] : '?';
  }
  return text;
}

std::string nameOfScalar(std::uint32_t scalar) {
  constexpr const char* names[] = {"float", "double", "complex<double>", "complex<float>"};
  return scalar >= 1 && scalar <= 4 ? names[scalar - 1] : "scalar " + std::to_string(scalar);
}

}  // namespace

void Checksum::addBlocks(const unsigned char* bytes, std::size_t count) {
  constexpr std::uint64_t prime = 0x9fb21c651e98df25;
  auto lanes = lanes_;
  for (std::size_t block = 0; block < count; ++block, bytes += blockBytes) {
    std::uint64_t words[4];
    std::memcpy(words, bytes, sizeof words);
    for (int k = 0; k < 4; ++k) {
      lanes[k] = rotated((lanes[k] ^ words[k]) * prime, 29);
    }
  }
  lanes_ = lanes;
}

void Checksum::add(const void* bytes, std::size_t count) {
  if (count == 0) {
    return;
  }
  const auto* from = static_cast<const unsigned char*>(bytes);
  total_ += count;
  if (numRest_ > 0) {
    const std::size_t taken = std::min(count, blockBytes - numRest_);
    std::memcpy(rest_.data() + numRest_, from, taken);
    numRest_ += taken;
    from += taken;
    count -= taken;
    if (numRest_ < blockBytes) {
      return;
    }
    addBlocks(rest_.data(), 1);
  }
  addBlocks(from, count / blockBytes);
  numRest_ = count % blockBytes;
  std::memcpy(rest_.data(), from + (count - numRest_), numRest_);
}

std::uint64_t Checksum::value() const {
  Checksum last = *this;
  if (last.numRest_ > 0) {
    std::fill(last.rest_.begin() + static_cast<std::ptrdiff_t>(last.numRest_), last.rest_.end(), 0);
    last.addBlocks(last.rest_.data(), 1);
  }
  std::uint64_t sum = total_;
  for (const std::uint64_t lane : last.lanes_) {
    sum = (sum ^ lane) * 0xd6e8feb86659fd93;
    sum ^= sum >> 32;
  }
  return sum;
}

SectionWriter::SectionWriter(std::ostream& out, const FileKind& kind, std::string where)
    : out_(out), where_(std::move(where)), buffer_(pieceBytes) {
  Header header{{}, byteOrderMark, kind.version, kind.scalar, 0};
  std::memcpy(header.magic, kind.magic, magicBytes);
  write(&header, sizeof header);
}

void SectionWriter::beginSection(const char* name, std::size_t bytesOfElement, std::size_t count) {
  const SectionHeader header = sectionHeader(name, bytesOfElement, count);
  write(&header, sizeof header);
}

void SectionWriter::write(const void* bytes, std::size_t count) {
  const auto* from = static_cast<const unsigned char*>(bytes);
  while (count > 0) {
    const std::size_t taken = std::min(count, buffer_.size() - used_);
    std::memcpy(buffer_.data() + used_, from, taken);
    used_ += taken;
    from += taken;
    count -= taken;
    if (used_ == buffer_.size()) {
      flush();
    }
  }
}

void SectionWriter::writeZeros(std::size_t count) {
  constexpr unsigned char zeros[64] = {};
  for (; count > 0; count -= std::min(count, sizeof zeros)) {
    write(zeros, std::min(count, sizeof zeros));
  }
}

void SectionWriter::writeChecksum() {
  beginSection(checksumName, sizeof(std::uint64_t), 1);
  flush();
  const std::uint64_t value = checksum_.value();
  write(&value, sizeof value);
  flush();
}

void SectionWriter::flush() {
  checksum_.add(buffer_.data(), used_);
  out_.write(reinterpret_cast<const char*>(buffer_.data()), static_cast<std::streamsize>(used_));
  if (!out_) {
    throw BadInput(where_ + ": cannot write " + std::to_string(used_) + " bytes");
  }
  used_ = 0;
}

SectionReader::SectionReader(std::istream& in, const FileKind& kind, std::string where)
    : in_(in), where_(std::move(where)) {
  const std::istream::pos_type here = in_.tellg();
  in_.seekg(0, std::ios::end);
  const std::istream::pos_type end = in_.tellg();
  in_.seekg(here);
  if (!in_ || here == std::istream::pos_type(-1) || end == std::istream::pos_type(-1)) {
    fail("cannot look where the stream ends");
  }
  left_ = static_cast<std::int64_t>(end - here);
  if (left_ < static_cast<std::int64_t>(sizeof(Header))) {
    fail("only " + std::to_string(left_) + " bytes, and the header alone has " + std::to_string(sizeof(Header)));
  }
  Header header;
  read(&header, sizeof header);
  if (std::memcmp(header.magic, kind.magic, magicBytes) != 0) {
    fail("begins with '" + printable(header.magic, magicBytes) + "', expected '" + kind.magic + "'");
  }
  if (header.byteOrder == otherByteOrder) {
    fail("written by a machine of the other byte order");
  }
  if (header.version != kind.version) {
    fail("of version " + std::to_string(header.version) + ", expected " + std::to_string(kind.version));
  }
  if (header.scalar != kind.scalar) {
    fail("of " + nameOfScalar(header.scalar) + ", expected " + nameOfScalar(kind.scalar));
  }
  if (header.byteOrder != byteOrderMark || header.nothing != 0) {
    fail("damaged in its header");
  }
}

std::size_t SectionReader::openSection(const char* name, std::size_t bytesOfElement) {
  const std::string expected = "section '" + std::string(name) + "'";
  if (left_ < static_cast<std::int64_t>(sizeof(SectionHeader))) {
    fail("ends where " + expected + " should begin");
  }
  SectionHeader header;
  read(&header, sizeof header);
  if (std::memcmp(header.name, sectionHeader(name, 0, 0).name, nameBytes) != 0) {
    fail("section '" + printable(header.name, nameBytes) + "', expected '" + name + "'");
  }
  if (header.bytesOfElement != bytesOfElement) {
    fail(expected + ": elements of " + std::to_string(header.bytesOfElement) + " bytes, expected " +
         std::to_string(bytesOfElement));
  }
  if (header.count > static_cast<std::uint64_t>(left_) / bytesOfElement) {
    fail(expected + ": " + std::to_string(header.count) + " elements of " + std::to_string(bytesOfElement) +
         " bytes, but only " + std::to_string(left_) + " bytes are left");
  }
  return static_cast<std::size_t>(header.count);
}

void SectionReader::read(void* bytes, std::size_t count) {
  auto* to = static_cast<unsigned char*>(bytes);
  while (count > 0) {
    const std::size_t taken = std::min(count, pieceBytes);
    in_.read(reinterpret_cast<char*>(to), static_cast<std::streamsize>(taken));
    if (!in_) {
      fail("cannot read the next " + std::to_string(taken) + " of " + std::to_string(left_) + " bytes");
    }
    checksum_.add(to, taken);
    left_ -= static_cast<std::int64_t>(taken);
    to += taken;
    count -= taken;
  }
}

void SectionReader::requireChecksum() {
  const std::size_t count = openSection(checksumName, sizeof(std::uint64_t));
  const std::uint64_t expected = checksum_.value();
  std::uint64_t value = 0;
  if (count == 1) {
    read(&value, sizeof value);
  }
  if (count != 1 || value != expected) {
    fail("damaged: its checksum is not that of what it holds");
  }
}

void SectionReader::fail(const std::string& what) const { throw BadInput(where_ + ": " + what); }

}  // namespace Komvos::Impl
