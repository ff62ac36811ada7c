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

namespace Komvos::Program {

namespace {

/// The lines of a file, and where they are.
class Lines {
 public:
  explicit Lines(const std::string& path) : path_(path) {
    std::error_code error;
    const auto status = std::filesystem::status(path, error);
    if (!std::filesystem::exists(status)) {
      throw BadInput(path + ": no such file");
    }
    if (std::filesystem::is_directory(status)) {
      throw BadInput(path + ": is a directory");
    }
    if (!std::filesystem::is_regular_file(status)) {
      throw BadInput(path + ": is not a regular file, and it is read twice");
    }
    bytes_ = static_cast<std::int64_t>(std::filesystem::file_size(path, error));
    in_.open(path);
    if (!in_) {
      throw BadInput(path + ": cannot be read");
    }
  }

  bool next() {
    ++number_;
    return static_cast<bool>(std::getline(in_, line_));
  }
  /// The next line that is neither blank nor a comment.
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
    if (error == std::errc::result_out_of_range) {  // also for what only underflows
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
  std::int64_t bytes_ = 0;
  std::ifstream in_;
  std::string line_;
  std::int64_t number_ = 0;
  const char* at_ = nullptr;
};

struct Banner {
  std::string format, field, symmetry;
};

Banner readBanner(Lines& lines) {
  if (!lines.next()) {
    lines.failAtEnd("the file is empty, no %%MatrixMarket line");
  }
  std::string text = lines.text();
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  std::istringstream words(text);
  std::string mark, object;
  Banner banner;
  words >> mark >> object >> banner.format >> banner.field >> banner.symmetry;
  if (mark != "%%matrixmarket") {
    lines.fail("not a Matrix Market file, it does not begin with %%MatrixMarket");
  }
  if (banner.symmetry.empty()) {
    lines.fail("the %%MatrixMarket line ends early: object, format, field and symmetry are needed");
  }
  if (object != "matrix") {
    lines.fail("holds a '" + object + "', a matrix is needed");
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
  return banner;
}

struct Size {
  std::int64_t rows, columns, entries;
};

Size readMatrixSize(Lines& lines, const Banner& banner, std::int64_t largestIndex) {
  if (!lines.nextData()) {
    lines.failAtEnd("the file ends before the line with rows, columns and entries");
  }
  const Size size{lines.integer("number of rows"), lines.integer("number of columns"),
                  lines.integer("number of entries")};
  lines.endOfLine();
  const auto count = [](std::int64_t n) { return std::to_string(n); };
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
  // The rest before anything as long as the matrix is allocated. Each entry serves one row, or two.
  const std::int64_t rowsServed = banner.symmetry == "general" ? 1 : 2;
  if (size.entries < size.rows / rowsServed + size.rows % rowsServed) {
    lines.fail(count(size.rows) + " rows with " + count(size.entries) +
               " entries: some rows have none, so the matrix is singular");
  }
  const std::int64_t shortestEntry = 6;  // "1 1 1\n"
  if (size.entries > lines.fileBytes() / shortestEntry) {
    lines.fail(count(size.entries) + " entries are announced, too many for a file of " + count(lines.fileBytes()) +
               " bytes");
  }
  return size;
}

/// What is known of a row or a column.
enum Seen : unsigned char { nothing = 0, entry = 1, nonZero = 3 };

void failIfSingular(const Lines& lines, const char* what, const std::vector<unsigned char>& seen) {
  const auto bad = std::find_if(seen.begin(), seen.end(), [](unsigned char s) { return s != nonZero; });
  if (bad != seen.end()) {
    lines.failAtEnd(std::string(what) + " " + std::to_string(bad - seen.begin() + 1) +
                    (*bad == nothing ? " has no entries" : " has only zero entries") + ": the matrix is singular");
  }
}

}  // namespace

std::int64_t checkMatrixFile(const std::string& path, std::int64_t largestIndex) {
  Lines lines(path);
  const Banner banner = readBanner(lines);
  if (banner.format != "coordinate") {
    lines.fail("format is array, a sparse matrix in coordinate format is needed");
  }
  const Size size = readMatrixSize(lines, banner, largestIndex);
  std::vector<unsigned char> rows(size.rows, nothing);
  std::vector<unsigned char> columns(size.rows, nothing);
  const auto index = [&](const char* what) {
    const std::int64_t i = lines.integer(what);
    if (i < 1 || i > size.rows) {
      lines.fail(std::string(what) + " " + std::to_string(i) + " is not in 1 .. " + std::to_string(size.rows));
    }
    return i - 1;
  };
  for (std::int64_t read = 0; read < size.entries; ++read) {
    if (!lines.nextData()) {
      lines.failAtEnd(std::to_string(size.entries) + " entries are announced, the file ends after " +
                      std::to_string(read));
    }
    const std::int64_t i = index("row");
    const std::int64_t j = index("column");
    const unsigned char now = lines.real() != 0 ? nonZero : entry;
    lines.endOfLine();
    rows[i] |= now;
    columns[j] |= now;
    if (banner.symmetry != "general") {
      rows[j] |= now;
      columns[i] |= now;
    }
  }
  if (lines.nextData()) {
    lines.fail("more than the " + std::to_string(size.entries) + " entries announced");
  }
  failIfSingular(lines, "row", rows);
  failIfSingular(lines, "column", columns);
  return size.rows;
}

std::vector<double> readVectorFile(const std::string& path, std::int64_t rows) {
  Lines lines(path);
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
