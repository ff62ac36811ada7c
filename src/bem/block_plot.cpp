#include "bem/block_plot.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <type_traits>

#include "Komvos_Error.hpp"
#include "support/output_file.hpp"
#include "support/text_format.hpp"

// How this works. One path for each colour, in tenths of a pixel, so that a block takes about 25 bytes.
namespace Komvos::Program {

namespace {

constexpr double side = 800, left = 20, top = 66;  // of the matrix, pixels
constexpr std::size_t mostBlocks = 50000;
constexpr double leastSideOfText = 15;
const char* const colourOfDense = "#c8553d";
constexpr std::array<const char*, 7> shades{"#e6eff7", "#c9ddee", "#a6c6e2", "#7eabd2",
                                            "#568dbe", "#336fa5", "#1a4e80"};

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    result += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : std::string(1, c);
  }
  return result;
}

/// Coordinates in pixels, without zeros at the end.
std::string number(double value) {
  std::string text = format("%.2f", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') {
    text.pop_back();
  }
  return text;
}

std::string text(double x, double y, const std::string& words, const std::string& more = "") {
  return "<text x='" + number(x) + "' y='" + number(y) + "'" + more + ">" + escaped(words) + "</text>\n";
}

std::string path(const std::string& colour, const std::string& lines) {
  return lines.empty() ? "" : "<path fill='" + colour + "' d='" + lines + "'/>\n";
}

std::string rectangle(double x, double y, double width, double height, const std::string& colour) {
  return "<rect x='" + number(x) + "' y='" + number(y) + "' width='" + number(width) + "' height='" + number(height) +
         "' fill='" + colour + "'/>\n";
}

class Picture {
 public:
  Picture(const std::vector<Block>& blocks, int unknowns) : scale_(side / unknowns) {
    for (const Block& block : blocks) {
      largestRank_ = std::max(largestRank_, block.isAdmissible ? block.rank : 0);
    }
  }

  void add(const Block& block) {
    const auto tenths = [&](int place) { return static_cast<int>(std::lround(10 * scale_ * place)); };
    const int x = tenths(block.columnBegin), y = tenths(block.rowBegin);
    const int width = tenths(block.columnEnd) - x, height = tenths(block.rowEnd) - y;
    const std::size_t shade = shadeOf(block.rank);
    (block.isAdmissible ? lowRank_[shade] : dense_) += format("M%d %dh%dv%dh%dz", x, y, width, height, -width);
    const double least = std::min(width, height) / 10.0;
    if (block.isAdmissible && least >= leastSideOfText) {
      const double size = std::min(13.0, 0.45 * least);
      texts_ +=
          text(left + (x + width / 2) / 10.0, top + (y + height / 2) / 10.0 + 0.35 * size, std::to_string(block.rank),
               " font-size='" + number(size) + "'" + (shade >= 4 ? " fill='#ffffff'" : ""));
    }
  }

  std::string blocks() const {
    std::string all = "<g transform='translate(" + number(left) + " " + number(top) +
                      ") scale(0.1)' stroke='#ffffff' stroke-width='3'>\n";
    for (std::size_t shade = 0; shade < shades.size(); ++shade) {
      all += path(shades[shade], lowRank_[shade]);
    }
    return all + path(colourOfDense, dense_) + "</g>\n<g text-anchor='middle' fill='#202020'>\n" + texts_ + "</g>\n";
  }

  std::string legend(double y) const {
    std::string all = rectangle(left, y, 14, 14, colourOfDense) + text(left + 20, y + 12, "dense") +
                      text(left + 90, y + 12, "of low rank: 0");
    double x = left + 184;
    for (const char* shade : shades) {
      all += rectangle(x, y, 22, 14, shade);
      x += 22;
    }
    return all + text(x + 6, y + 12, std::to_string(largestRank_));
  }

 private:
  std::size_t shadeOf(int rank) const {
    return std::min<std::size_t>(shades.size() - 1,
                                 static_cast<std::size_t>(std::max(rank, 0)) * shades.size() / (largestRank_ + 1));
  }

  double scale_;
  int largestRank_ = 0;
  std::array<std::string, shades.size()> lowRank_;
  std::string dense_, texts_;
};

std::int64_t entriesOf(const Block& block) { return static_cast<std::int64_t>(block.rows()) * block.columns(); }

/// Takes the smallest blocks away where there are too many. \return what to say of them
std::string leaveOut(std::vector<Block>& blocks, int unknowns) {
  if (blocks.size() <= mostBlocks) {
    return "";
  }
  std::vector<std::int64_t> sizes;
  for (const Block& block : blocks) {
    sizes.push_back(entriesOf(block));
  }
  std::nth_element(sizes.begin(), sizes.begin() + mostBlocks, sizes.end(), std::greater<>());
  const std::int64_t limit = sizes[mostBlocks];
  const auto drawn =
      std::stable_partition(blocks.begin(), blocks.end(), [&](const Block& block) { return entriesOf(block) > limit; });
  long long count = 0, dense = 0;
  double entries = 0;
  for (auto block = drawn; block != blocks.end(); ++block) {
    ++count;
    dense += block->isAdmissible ? 0 : 1;
    entries += static_cast<double>(entriesOf(*block));
  }
  blocks.erase(drawn, blocks.end());
  return format("Grey, not drawn: %lld blocks of up to %lld entries, %lld of them dense, %.2f %% of the matrix", count,
                static_cast<long long>(limit), dense, 100 * entries / unknowns / unknowns);
}

}  // namespace

std::vector<Block> gatherBlocks(const std::vector<Block>& mine, MPI_Comm comm) {
  static_assert(std::is_trivially_copyable_v<Block>, "blocks travel as bytes");
  int rank = 0, size = 0;
  mpiCheck(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
  mpiCheck(MPI_Comm_size(comm, &size), "MPI_Comm_size");
  const int count = static_cast<int>(mine.size());
  std::vector<int> counts(rank == 0 ? size : 0), begins(counts.size());
  mpiCheck(MPI_Gather(&count, 1, MPI_INT, counts.data(), 1, MPI_INT, 0, comm), "MPI_Gather");
  int total = 0;
  for (std::size_t r = 0; r < counts.size(); ++r) {
    begins[r] = total;
    total += counts[r];
  }
  std::vector<Block> all(total);
  MPI_Datatype type = MPI_DATATYPE_NULL;
  mpiCheck(MPI_Type_contiguous(sizeof(Block), MPI_BYTE, &type), "MPI_Type_contiguous");
  mpiCheck(MPI_Type_commit(&type), "MPI_Type_commit");
  const int code = MPI_Gatherv(mine.data(), count, type, all.data(), counts.data(), begins.data(), type, 0, comm);
  mpiCheck(MPI_Type_free(&type), "MPI_Type_free");
  mpiCheck(code, "MPI_Gatherv");
  return all;
}

void drawBlocks(const std::string& path, std::vector<Block> blocks, int unknowns, const std::string& title) {
  const auto lowRank =
      std::count_if(blocks.begin(), blocks.end(), [](const Block& block) { return block.isAdmissible; });
  const std::string counts = format("%d unknowns, %lld blocks of low rank, %lld dense", unknowns,
                                    static_cast<long long>(lowRank), static_cast<long long>(blocks.size()) - lowRank);
  Picture picture(blocks, unknowns);
  const std::string note = leaveOut(blocks, unknowns);
  for (const Block& block : blocks) {
    picture.add(block);
  }
  OutputFile file(path);
  const double width = side + 2 * left, height = top + side + (note.empty() ? 40 : 62);
  file.stream() << "<svg xmlns='http://www.w3.org/2000/svg' width='" << number(width) << "' height='" << number(height)
                << "' viewBox='0 0 " << number(width) << " " << number(height)
                << "' font-family='sans-serif' font-size='13'>\n"
                << rectangle(0, 0, width, height, "#ffffff")
                << text(left, 26, title, " font-size='16' font-weight='bold'") << text(left, 48, counts)
                << rectangle(left, top, side, side, "#d9d9d9") << picture.blocks() << picture.legend(top + side + 12)
                << (note.empty() ? "" : text(left, top + side + 50, note)) << "</svg>\n";
  file.commit();
}

}  // namespace Komvos::Program
