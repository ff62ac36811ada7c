/// \file Komvos_GmshFile.cpp
/// How it works: a file has sections $Name ... $EndName, of which Nodes and Elements are read. GmshInput gives the next
/// number, whether it is written as text or in binary, so one function reads both. Text is taken by lines, so that a
/// number that is missing is noticed in its line.
///
/// The formats: Gmsh's reference manual, "MSH file format" and "Legacy formats".
#include "impl/Komvos_GmshFile.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "Komvos_Error.hpp"

namespace Komvos::Impl {
namespace {

/// For messages: a damaged file may have any bytes.
std::string shown(std::string_view text) {
  std::string result(text.substr(0, 40));
  std::replace_if(result.begin(), result.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return result;
}

/// The bytes of a file, and how far they are read.
class GmshInput {
 public:
  GmshInput(const std::string& path, std::string_view text) : path_(path), text_(text) {}

  /// The next line that is not empty, without its end; empty at the end of the file.
  std::string_view line() {
    skipEmptyLines();
    const std::size_t begin = at_;
    at_ = endOfLine();
    std::string_view result = text_.substr(begin, at_ - begin);
    while (!result.empty() && isSpace(result.back())) {
      result.remove_suffix(1);
    }
    return result;
  }
  /// To the first byte after this line: where binary data begin.
  void leaveLine() {
    at_ = std::min(endOfLine() + 1, text_.size());
    ++line_;
  }
  /// Text: to the next line that is not empty. Binary: nothing.
  void nextRecord() {
    if (!isBinary_) {
      at_ = endOfLine();
      skipEmptyLines();
    }
  }

  /// Numbers that are 4 bytes in binary, 8 bytes, or floating-point ones of 8 bytes.
  int integer() { return isBinary_ ? bytes<std::int32_t>() : number<int>(); }
  std::int64_t size() { return isBinary_ ? bytes<std::int64_t>() : number<std::int64_t>(); }
  double real() { return isBinary_ ? bytes<double>() : number<double>(); }
  /// A number written as text, also in a binary file.
  template <class T>
  T number() {
    std::string_view word = nextWord();
    if (word.front() == '+') {
      word.remove_prefix(1);
    }
    T value{};
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size()) {
      fail("'" + shown(word) + "' is no " + (std::numeric_limits<T>::is_integer ? "whole number" : "number") +
           " that can be read");
    }
    return value;
  }
  void skipBytes(std::int64_t count) {
    expect(count);
    at_ += static_cast<std::size_t>(count);
  }

  void enter(std::string_view section) {
    section_ = section;
    sectionLine_ = line_;
  }
  void setBinary(bool isBinary) { isBinary_ = isBinary; }
  bool isBinary() const { return isBinary_; }
  /// To the line after $EndSection, from anywhere in the section.
  void leaveSection() {
    const std::string end = "$End" + section_;
    const std::size_t found = text_.find(end, at_);
    if (found == std::string_view::npos) {
      failBrokenOff();
    }
    line_ += std::count(text_.begin() + at_, text_.begin() + found, '\n');
    at_ = found + end.size();
    section_.clear();
  }
  /// The next word must be $EndSection.
  void expectEnd() {
    nextRecord();
    const std::string end = "$End" + section_;
    skipEmptyLines();
    if (at_ == text_.size()) {
      failBrokenOff();
    }
    if (text_.substr(at_, end.size()) != end) {
      fail("more is there than was announced: " + end + " is missing");
    }
    leaveSection();
  }

  std::size_t bytesLeft() const { return text_.size() - at_; }
  [[noreturn]] void fail(const std::string& what) const {
    const std::string in = section_.empty() ? "" : " ($" + shown(section_) + ")";
    throw BadInput(path_ + (isBinary_ ? ", byte " + std::to_string(at_) : ", line " + std::to_string(line_)) + in +
                   ": " + what);
  }
  [[noreturn]] void failBrokenOff() const {
    throw BadInput(path_ + ": breaks off in its section $" + shown(section_) +
                   (isBinary_ ? "" : ", which begins in line " + std::to_string(sectionLine_)));
  }

 private:
  static bool isSpace(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
  std::size_t endOfLine() const { return std::min(text_.find('\n', at_), text_.size()); }

  void skipEmptyLines() {
    for (; at_ < text_.size() && isSpace(text_[at_]); ++at_) {
      line_ += text_[at_] == '\n' ? 1 : 0;
    }
  }
  /// The next one in this line.
  std::string_view nextWord() {
    while (at_ < text_.size() && text_[at_] != '\n' && isSpace(text_[at_])) {
      ++at_;
    }
    if (at_ == text_.size()) {
      failBrokenOff();
    }
    const std::size_t begin = at_;
    while (at_ < text_.size() && !isSpace(text_[at_])) {
      ++at_;
    }
    if (begin == at_) {
      fail("the line ends where another number is expected");
    }
    return text_.substr(begin, at_ - begin);
  }
  void expect(std::int64_t count) const {
    if (count < 0 || static_cast<std::uint64_t>(count) > bytesLeft()) {
      failBrokenOff();
    }
  }
  template <class T>
  T bytes() {
    expect(sizeof(T));
    T value;
    std::memcpy(&value, text_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }

  const std::string& path_;
  std::string_view text_;
  std::size_t at_ = 0;
  std::int64_t line_ = 1, sectionLine_ = 0;
  std::string section_;
  bool isBinary_ = false;
};

/// How many nodes an element of type 1, 2, ... has; 0: not known. From Gmsh's list of element types.
constexpr std::int16_t nodesOfType[] = {
    2,  3,   4,   4,  8,  6,  5,  3,  6,  9,  10, 27, 18, 14, 1,   8,   20,  15,  13, 9,  10, 12, 15, 15, 21,
    4,  5,   6,   20, 35, 56, 22, 28, 0,  0,  16, 25, 36, 12, 16,  20,  28,  36,  45, 55, 66, 49, 64, 81, 100,
    121, 18, 21,  24, 27, 30, 24, 28, 32, 36, 40, 7,  8,  9,  10,  11,  0,   0,   0,  0,  84, 120, 165, 220, 286,
    0,  0,   0,   34, 40, 46, 52, 58, 1,  1,  1,  1,  1,  1,  0,   0,   64,  125, 216, 343, 512, 729, 1000};
int numNodes(int type) {
  return type >= 1 && type <= static_cast<int>(sizeof nodesOfType / sizeof *nodesOfType) ? nodesOfType[type - 1] : 0;
}

/// Curved ones too: their corners come first.
bool isTriangle(int type) {
  return type == 2 || type == 9 || (type >= 20 && type <= 25) || (type >= 42 && type <= 46) ||
         (type >= 52 && type <= 56);
}
bool isQuadrangle(int type) {
  return type == 3 || type == 10 || type == 16 || (type >= 36 && type <= 41) || (type >= 47 && type <= 51) ||
         (type >= 57 && type <= 61);
}

class GmshReader {
 public:
  GmshReader(const std::string& path, const std::string& text) : path_(path), in_(path, text) {}

  TriangleMesh read() && {
    readFormat();
    for (std::string_view line = in_.line(); !line.empty(); line = in_.line()) {
      if (line.front() != '$') {
        in_.fail("'" + shown(line) + "' stands between sections; $Nodes or the like is expected");
      }
      in_.enter(line.substr(1));
      in_.leaveLine();
      if (line == "$Nodes") {
        hasNodes_ = true;
        if (isVersion4_) {
          readNodes4();
        } else {
          readNodes2();
        }
      } else if (line == "$Elements") {
        hasElements_ = true;
        if (isVersion4_) {
          readElements4();
        } else {
          readElements2();
        }
      } else if (line == "$ParametricNodes") {
        in_.fail("parametric nodes of version 2.2 are not read; Gmsh writes $Nodes if Mesh.SaveParametric is 0");
      } else {
        in_.leaveSection();
      }
    }
    if (!hasNodes_ || !hasElements_) {
      throw BadInput(path_ + ": has no section " + (hasNodes_ ? "$Elements" : "$Nodes") + "; does it break off?");
    }
    return std::move(mesh_);
  }

 private:
  void readFormat() {
    if (in_.line() != "$MeshFormat") {
      throw BadInput(path_ + ": does not begin with $MeshFormat, as Gmsh's files do");
    }
    in_.enter("MeshFormat");
    in_.leaveLine();
    const auto version = in_.number<double>();
    const int isBinary = in_.number<int>(), bytesOfSize = in_.number<int>();
    if (version != 2.2 && version != 4.1) {
      in_.fail("a version other than 2.2 and 4.1; Gmsh's option Mesh.MshFileVersion sets it");
    }
    if (isBinary != 0 && bytesOfSize != 8) {
      in_.fail("numbers of " + std::to_string(bytesOfSize) + " bytes; 8 are expected");
    }
    isVersion4_ = version == 4.1;
    in_.leaveLine();
    if (isBinary != 0) {
      in_.setBinary(true);
      if (in_.integer() != 1) {
        in_.fail("written on a machine with another order of bytes");
      }
    }
    in_.leaveSection();
  }

  /// \param count as the file has it. \param bytes that each takes at least
  int checkedCount(std::int64_t count, std::size_t bytes, const char* what) {
    if (count < 0) {
      in_.fail(std::to_string(count) + " " + what);
    }
    if (static_cast<std::uint64_t>(count) > in_.bytesLeft() / bytes) {
      in_.failBrokenOff();
    }
    if (count > std::numeric_limits<int>::max()) {
      in_.fail(std::to_string(count) + " " + what + "; at most 2147483647 can be read");
    }
    return static_cast<int>(count);
  }

  /// The number of records of version 2, which is text also in binary files.
  std::int64_t textCount() {
    const auto count = in_.number<std::int64_t>();
    if (in_.isBinary()) {
      in_.leaveLine();
    }
    return count;
  }

  void addNode(std::int64_t tag, const Point3& place) {
    if (!vertexOf_.emplace(tag, static_cast<int>(mesh_.vertices.size())).second) {
      in_.fail("node " + std::to_string(tag) + " is there already");
    }
    mesh_.vertices.push_back(place);
  }
  Point3 point() {
    const double x = in_.real(), y = in_.real(), z = in_.real();
    return {x, y, z};
  }

  void readNodes2() {
    const int count = checkedCount(textCount(), 4, "nodes");
    for (int i = 0; i < count; ++i) {
      in_.nextRecord();
      const int tag = in_.integer();
      addNode(tag, point());
    }
    in_.expectEnd();
  }

  void readNodes4() {
    const std::int64_t blocks = in_.size();
    for (int k = 0; k < 3; ++k) {
      in_.size();  // number of nodes, least and largest tag
    }
    std::vector<std::int64_t> tags;
    for (std::int64_t b = 0; b < blocks; ++b) {
      in_.nextRecord();
      const int dimension = in_.integer();
      in_.integer();  // the number of the entity
      const bool isParametric = in_.integer() != 0;
      tags.resize(checkedCount(in_.size(), 2, "nodes"));
      for (std::int64_t& tag : tags) {
        in_.nextRecord();
        tag = in_.size();
      }
      for (const std::int64_t tag : tags) {
        in_.nextRecord();
        addNode(tag, point());
        for (int k = 0; isParametric && k < dimension; ++k) {
          in_.real();
        }
      }
    }
    in_.expectEnd();
  }

  void readElements2() {
    const int count = checkedCount(textCount(), 4, "elements");
    for (int done = 0; done < count;) {
      in_.nextRecord();
      // Text: tag, type, number of labels, labels, nodes. Binary: type, how many follow, number of labels; then of each
      // the tag, labels, nodes.
      int tag = in_.isBinary() ? 0 : in_.integer();
      const int type = in_.integer(), following = in_.isBinary() ? in_.integer() : 1, labels = in_.integer();
      if (following < 1 || following > count - done || labels < 0) {
        in_.fail(std::to_string(following) + " elements with " + std::to_string(labels) + " labels follow, where " +
                 std::to_string(count - done) + " elements are left");
      }
      for (int i = 0; i < following; ++i) {
        if (in_.isBinary()) {
          tag = in_.integer();
        }
        for (int label = 0; label < labels; ++label) {
          in_.integer();
        }
        readElement(tag, type, [this] { return in_.integer(); }, sizeof(std::int32_t));
      }
      done += following;
    }
    in_.expectEnd();
  }

  void readElements4() {
    const std::int64_t blocks = in_.size();
    for (int k = 0; k < 3; ++k) {
      in_.size();  // number of elements, least and largest tag
    }
    for (std::int64_t b = 0; b < blocks; ++b) {
      in_.nextRecord();
      in_.integer();  // dimension of the entity
      in_.integer();  // its number
      const int type = in_.integer(), count = checkedCount(in_.size(), 2, "elements");
      for (int i = 0; i < count; ++i) {
        in_.nextRecord();
        const std::int64_t tag = in_.size();
        readElement(tag, type, [this] { return in_.size(); }, sizeof(std::int64_t));
      }
    }
    in_.expectEnd();
  }

  /// \param nextNode reads the tag of a node. \param bytesOfTag that it takes in binary
  template <class NextNode>
  void readElement(std::int64_t tag, int type, NextNode nextNode, int bytesOfTag) {
    const int numCorners = isTriangle(type) ? 3 : isQuadrangle(type) ? 4 : 0;
    int corner[4] = {0, 0, 0, 0};
    for (int k = 0; k < numCorners; ++k) {
      corner[k] = vertexOf(nextNode(), tag);
    }
    if (in_.isBinary()) {
      if (numNodes(type) == 0) {
        in_.fail("elements of type " + std::to_string(type) + " are not known here");
      }
      in_.skipBytes(std::int64_t{bytesOfTag} * (numNodes(type) - numCorners));
    }
    if (numCorners == 3) {
      mesh_.triangles.push_back({corner[0], corner[1], corner[2]});
    } else if (numCorners == 4) {
      split(corner);
    }
  }

  int vertexOf(std::int64_t node, std::int64_t element) {
    const auto found = vertexOf_.find(node);
    if (found == vertexOf_.end()) {
      in_.fail("element " + std::to_string(element) + " names node " + std::to_string(node) + ", which does not exist");
    }
    return found->second;
  }

  /// Along the shorter diagonal.
  void split(const int* corner) {
    const auto length = [&](int a, int b) { return norm(mesh_.vertices[corner[a]] - mesh_.vertices[corner[b]]); };
    if (length(1, 3) < length(0, 2)) {
      mesh_.triangles.push_back({corner[0], corner[1], corner[3]});
      mesh_.triangles.push_back({corner[1], corner[2], corner[3]});
    } else {
      mesh_.triangles.push_back({corner[0], corner[1], corner[2]});
      mesh_.triangles.push_back({corner[0], corner[2], corner[3]});
    }
  }

  const std::string& path_;
  GmshInput in_;
  TriangleMesh mesh_;
  std::unordered_map<std::int64_t, int> vertexOf_;
  bool isVersion4_ = false, hasNodes_ = false, hasElements_ = false;
};

}  // namespace

TriangleMesh readGmsh(const std::string& path, const std::string& text) { return GmshReader(path, text).read(); }

}  // namespace Komvos::Impl
