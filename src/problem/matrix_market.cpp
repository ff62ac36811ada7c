#include "problem/matrix_market.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "Komvos_Error.hpp"

// How this works: LineReader steps through the lines of a file and parses one word after the other from the current
// line; whatever it cannot parse it reports with file and line. Both public functions read in the same order: the
// banner (the %%MatrixMarket line), the line with the sizes, and the entries. The sizes are checked against the length
// of the file before anything is allocated by them. checkMatrixFile keeps no entries: SingularityCheck notes for each
// row and column whether an entry, and a non-zero one, was seen.

namespace Komvos::Program {

namespace {

namespace fs = std::filesystem;

std::string count(std::int64_t n) { return std::to_string(n); }

void requireRegularFile(const std::string& path) {
  std::error_code ignored;
  const auto status = fs::status(path, ignored);
  if (!fs::exists(status)) {
    throw BadInput(path + ": no such file");
  }
  if (fs::is_directory(status)) {
    throw BadInput(path + ": is a directory");
  }
  if (!fs::is_regular_file(status)) {
    throw BadInput(path + ": is not a regular file, and it is read twice");
  }
}

/// Reads a file line by line, and the current line word by word.
class LineReader {
 public:
  explicit LineReader(const std::string& path) : path_(path) {
    requireRegularFile(path);
    std::error_code ignored;
    bytes_ = static_cast<std::int64_t>(fs::file_size(path, ignored));
    in_.open(path);
    if (!in_) {
      throw BadInput(path + ": cannot be read");
    }
  }

  /// Goes to the next line. \return false at the end of the file
  bool next() {
    ++number_;
    return static_cast<bool>(std::getline(in_, line_));
  }
  /// Goes to the next line that is neither blank nor a comment.
  bool nextData() {
    while (next()) {
      const std::size_t first = line_.find_first_not_of(" \t\r");
      if (first != std::string::npos && line_[first] != '%') {
        at_ = line_.data() + first;
        return true;
      }
    }
    return false;
  }
  const std::string& text() const { return line_; }
  std::int64_t fileBytes() const { return bytes_; }

  [[noreturn]] void fail(const std::string& what) const {
    throw BadInput(path_ + ", line " + std::to_string(number_) + ": " + what);
  }
  [[noreturn]] void failAtEnd(const std::string& what) const { throw BadInput(path_ + ": " + what); }

  /// The next word of the line. \param what its name in errors
  std::int64_t integer(const char* what) {
    const auto [begin, end] = word(what);
    std::int64_t value = 0;
    const auto [stop, error] = std::from_chars(begin, end, value);
    if (error == std::errc::result_out_of_range) {
      fail(std::string(what) + " " + std::string(begin, end) + " does not fit in 64 bits");
    }
    if (error != std::errc() || stop != end) {
      fail(std::string(what) + " expected, found '" + std::string(begin, end) + "'");
    }
    return value;
  }

  double real() {
    const auto [begin, end] = word("value");
    double value = 0;
    auto [stop, error] = std::from_chars(begin, end, value);
    if (error == std::errc::result_out_of_range) {  // also reported for underflow, which strtod rounds
      value = std::strtod(std::string(begin, end).c_str(), nullptr);
      error = std::errc();
    }
    if (error != std::errc() || stop != end) {
      fail("value expected, found '" + std::string(begin, end) + "'");
    }
    if (!std::isfinite(value)) {
      fail("value " + std::string(begin, end) + " is not finite");
    }
    return value;
  }

  void endOfLine() {
    if (skipBlanks() != line_.data() + line_.size()) {
      fail("more on the line than expected: '" + std::string(at_) + "'");
    }
    if (in_.eof()) {
      fail("the file ends before the line does: was it cut off? If it is whole, end it with a line break");
    }
  }

 private:
  const char* skipBlanks() {
    while (*at_ == ' ' || *at_ == '\t' || *at_ == '\r') {
      ++at_;
    }
    return at_;
  }
  std::pair<const char*, const char*> word(const char* what) {
    const char* begin = skipBlanks();
    while (*at_ != '\0' && std::isspace(static_cast<unsigned char>(*at_)) == 0) {
      ++at_;
    }
    if (begin == at_) {
      fail(std::string("the line ends before the ") + what);
    }
    return {*begin == '+' ? begin + 1 : begin, at_};
  }

  std::string path_;
  std::int64_t bytes_ = 0;  // of the file
  std::ifstream in_;
  std::string line_;
  std::int64_t number_ = 0;   // of the line, from 1
  const char* at_ = nullptr;  // the rest of the line
};

/// The first line of a file, in lower case.
struct Banner {
  std::string mark, object, format, field, symmetry;
};

void checkBanner(const LineReader& lines, const Banner& banner) {
  if (banner.mark != "%%matrixmarket") {
    lines.fail("not a Matrix Market file, it does not begin with %%MatrixMarket");
  }
  if (banner.symmetry.empty()) {
    lines.fail("the %%MatrixMarket line ends early: object, format, field and symmetry are needed");
  }
  if (banner.object != "matrix") {
    lines.fail("holds a '" + banner.object + "', a matrix is needed");
  }
  if (banner.format != "coordinate" && banner.format != "array") {
    lines.fail("format '" + banner.format + "' is neither coordinate nor array");
  }
  if (banner.field != "real" && banner.field != "integer") {
    lines.fail("field is " + banner.field + ", real or integer values are needed");
  }
  if (banner.symmetry != "general" && banner.symmetry != "symmetric" && banner.symmetry != "skew-symmetric") {
    lines.fail("symmetry '" + banner.symmetry + "' is not general, symmetric or skew-symmetric");
  }
}

Banner readBanner(LineReader& lines) {
  if (!lines.next()) {
    lines.failAtEnd("the file is empty, no %%MatrixMarket line");
  }
  std::string text = lines.text();
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  std::istringstream words(text);
  Banner banner;
  words >> banner.mark >> banner.object >> banner.format >> banner.field >> banner.symmetry;
  checkBanner(lines, banner);
  return banner;
}

struct Size {
  std::int64_t rows, columns, entries;
};

/// Rejects sizes that the rest of the file cannot fulfil, before memory is allocated by them.
void checkMatrixSize(const LineReader& lines, const Size& size, const Banner& banner, std::int64_t largestIndex) {
  if (size.rows != size.columns) {
    lines.fail("the matrix has " + count(size.rows) + " rows and " + count(size.columns) +
               " columns, a square one is needed");
  }
  if (size.rows < 1 || size.entries < 0) {
    lines.fail(count(size.rows) + " rows and " + count(size.entries) + " entries are no system to solve");
  }
  if (size.rows > largestIndex) {
    lines.fail(count(size.rows) + " rows do not fit the installed global ordinal, which ends at " +
               count(largestIndex));
  }
  const std::int64_t rowsPerEntry = banner.symmetry == "general" ? 1 : 2;  // an entry is mirrored unless general
  if (size.entries < size.rows / rowsPerEntry + size.rows % rowsPerEntry) {
    lines.fail(count(size.rows) + " rows with " + count(size.entries) +
               " entries: some rows have none, so the matrix is singular");
  }
  const std::int64_t shortestEntry = 6;  // "1 1 1\n"
  if (size.entries > lines.fileBytes() / shortestEntry) {
    lines.fail(count(size.entries) + " entries are announced, too many for a file of " + count(lines.fileBytes()) +
               " bytes");
  }
}

Size readMatrixSize(LineReader& lines) {
  if (!lines.nextData()) {
    lines.failAtEnd("the file ends before the line with rows, columns and entries");
  }
  const Size size{lines.integer("number of rows"), lines.integer("number of columns"),
                  lines.integer("number of entries")};
  lines.endOfLine();
  return size;
}

/// Finds rows and columns without a non-zero entry.
class SingularityCheck {
 public:
  explicit SingularityCheck(std::int64_t size) : rows_(size, nothing), columns_(size, nothing) {}

  void add(std::int64_t row, std::int64_t column, double value) {
    const unsigned char seen = value != 0 ? nonZero : entry;
    rows_[row] |= seen;
    columns_[column] |= seen;
  }

  void failIfSingular(const LineReader& lines) const {
    failIfSingular(lines, "row", rows_);
    failIfSingular(lines, "column", columns_);
  }

 private:
  /// What was seen of a row or a column; bits.
  enum Seen : unsigned char { nothing = 0, entry = 1, nonZero = 3 };

  static void failIfSingular(const LineReader& lines, const char* what, const std::vector<unsigned char>& seen) {
    const auto bad = std::find_if(seen.begin(), seen.end(), [](unsigned char s) { return s != nonZero; });
    if (bad != seen.end()) {
      lines.failAtEnd(std::string(what) + " " + count(bad - seen.begin() + 1) +
                      (*bad == nothing ? " has no entries" : " has only zero entries") + ": the matrix is singular");
    }
  }

  std::vector<unsigned char> rows_;
  std::vector<unsigned char> columns_;
};

/// Of a row or column, counted from 0.
std::int64_t readIndex(LineReader& lines, const char* what, std::int64_t rows) {
  const std::int64_t index = lines.integer(what);
  if (index < 1 || index > rows) {
    lines.fail(std::string(what) + " " + count(index) + " is not in 1 .. " + count(rows));
  }
  return index - 1;
}

}  // namespace

std::int64_t checkMatrixFile(const std::string& path, std::int64_t largestIndex) {
  LineReader lines(path);
  const Banner banner = readBanner(lines);
  if (lines.text().back() == '\r') {
    lines.fail("lines end in CR LF, which Tpetra's reader refuses; sed -i 's/\\r$//' takes the CR away");
  }
  if (banner.format != "coordinate") {
    lines.fail("format is array, a sparse matrix in coordinate format is needed");
  }
  const Size size = readMatrixSize(lines);
  checkMatrixSize(lines, size, banner, largestIndex);
  SingularityCheck check(size.rows);
  bool anyAbove = false, anyBelow = false;  // the diagonal
  for (std::int64_t read = 0; read < size.entries; ++read) {
    if (!lines.nextData()) {
      lines.failAtEnd(count(size.entries) + " entries are announced, the file ends after " + count(read));
    }
    const std::int64_t row = readIndex(lines, "row", size.rows);
    const std::int64_t column = readIndex(lines, "column", size.rows);
    const double value = lines.real();
    lines.endOfLine();
    check.add(row, column, value);
    anyAbove = anyAbove || column > row;
    anyBelow = anyBelow || column < row;
    if (banner.symmetry != "general" && anyAbove && anyBelow) {
      lines.fail("entries above and below the diagonal of a " + banner.symmetry +
                 " matrix: the file must have one half");
    }
    if (banner.symmetry == "skew-symmetric" && row == column) {
      lines.fail("an entry on the diagonal of a skew-symmetric matrix");
    }
    if (banner.symmetry != "general") {
      check.add(column, row, value);
    }
  }
  if (lines.nextData()) {
    lines.fail("more than the " + count(size.entries) + " entries announced");
  }
  check.failIfSingular(lines);
  return size.rows;
}

std::vector<double> readVectorFile(const std::string& path, std::int64_t rows) {
  LineReader lines(path);
  const Banner banner = readBanner(lines);
  if (banner.format != "array" || banner.symmetry != "general") {
    lines.fail("format is " + banner.format + " " + banner.symmetry + ", a vector is array general");
  }
  if (!lines.nextData()) {
    lines.failAtEnd("the file ends before the line with rows and columns");
  }
  const std::int64_t length = lines.integer("number of rows");
  const std::int64_t columns = lines.integer("number of columns");
  lines.endOfLine();
  if (length != rows || columns != 1) {
    lines.fail(std::to_string(length) + " x " + std::to_string(columns) + " values, the matrix needs " +
               std::to_string(rows) + " x 1");
  }
  std::vector<double> values;
  values.reserve(rows);
  while (lines.nextData()) {
    if (static_cast<std::int64_t>(values.size()) == rows) {
      lines.fail("more than the " + std::to_string(rows) + " values announced");
    }
    values.push_back(lines.real());
    lines.endOfLine();
  }
  if (static_cast<std::int64_t>(values.size()) < rows) {
    lines.failAtEnd(std::to_string(rows) + " values are announced, the file ends after " +
                    std::to_string(values.size()));
  }
  return values;
}

}  // namespace Komvos::Program
