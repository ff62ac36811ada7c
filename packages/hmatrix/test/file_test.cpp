/// \file file_test.cpp
/// Hierarchical matrices written to a stream and read again; and what is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "Komvos_Error.hpp"
#include "Komvos_HMatrix.hpp"
#include "Komvos_SectionFile.hpp"
#include "point_sets.hpp"

namespace Komvos {
namespace {

using Space = Kokkos::DefaultExecutionSpace;
template <class Scalar>
using Matrix = HMatrix<Scalar, Space>;
template <class Scalar>
using Vectors =
    Kokkos::View<typename Matrix<Scalar>::value_type**, Kokkos::LayoutLeft, typename Matrix<Scalar>::memory_space>;

template <class Scalar>
Scalar valueOf(double r) {
  if constexpr (std::is_same_v<Scalar, std::complex<double>>) {
    return std::exp(Scalar(0, 3 * r)) / r;
  } else {
    return static_cast<Scalar>(1 / r);
  }
}

struct Shape {
  Storage storage = Storage::Whole;
  bool isHalf = false;
  int rows = 400, columns = 400;
  double accuracy = 1e-4;
  int leaf = 15;
};

template <class Scalar>
Matrix<Scalar> makeMatrix(const Shape& shape) {
  const auto rowPoints = test::spiralOnSphere(shape.rows), columnPoints = test::spiralOnSphere(shape.columns);
  const auto kernel = test::distanceKernel<Scalar>(
      rowPoints, columnPoints, [](double r) { return valueOf<Scalar>(r); }, Scalar(20));
  const ClusterTree rows(rowPoints, {}, {shape.leaf}), columns(columnPoints, {}, {shape.leaf});
  HMatrixOptions options;
  options.lowRank.accuracy = shape.accuracy;
  options.storage = shape.storage;
  options.halfIfSymmetric = shape.isHalf;
  return {rows, shape.rows == shape.columns ? rows : columns, kernel, options};
}

template <class Scalar>
std::string saved(const Matrix<Scalar>& matrix) {
  std::ostringstream out;
  matrix.save(out);
  return out.str();
}

template <class Scalar>
Matrix<Scalar> loaded(const std::string& bytes) {
  std::istringstream in(bytes);
  return Matrix<Scalar>::load(in);
}

/// The message of the refusal.
template <class Scalar>
std::string refusal(const std::string& bytes) {
  try {
    loaded<Scalar>(bytes);
  } catch (const BadInput& error) {
    return error.what();
  }
  return {};
}

/// The bytes of a product.
template <class Scalar>
std::string product(const Matrix<Scalar>& matrix, bool transposed, int vectors) {
  const int length = transposed ? matrix.numRows() : matrix.numColumns();
  const Vectors<Scalar> x("x", length, vectors);
  const Vectors<Scalar> y("y", transposed ? matrix.numColumns() : matrix.numRows(), vectors);
  const auto from = Kokkos::create_mirror_view(x), to = Kokkos::create_mirror_view(y);
  for (int q = 0; q < vectors; ++q) {
    for (int i = 0; i < length; ++i) {
      from(i, q) = static_cast<typename Matrix<Scalar>::value_type>(std::sin(1.0 + i * (1.0 + q)));
    }
  }
  Kokkos::deep_copy(x, from);
  transposed ? matrix.multiplyTransposed(Space(), x, y) : matrix.multiply(Space(), x, y);
  Space().fence();
  Kokkos::deep_copy(to, y);
  return {reinterpret_cast<const char*>(to.data()), to.span() * sizeof(typename Matrix<Scalar>::value_type)};
}

template <class Scalar>
void requireSameMatrix(const Matrix<Scalar>& a, const Matrix<Scalar>& b) {
  ASSERT_EQ(a.numRows(), b.numRows());
  ASSERT_EQ(a.numColumns(), b.numColumns());
  EXPECT_EQ(a.rowPlaces(), b.rowPlaces());
  EXPECT_EQ(a.columnPlaces(), b.columnPlaces());
  EXPECT_EQ(a.bytesRead(), b.bytesRead());
  EXPECT_EQ(a.report().numLowRank, b.report().numLowRank);
  EXPECT_EQ(a.report().numDense, b.report().numDense);
  EXPECT_EQ(a.report().blocksOfRank, b.report().blocksOfRank);
  EXPECT_EQ(a.report().bytes, b.report().bytes);
  EXPECT_EQ(a.report().bytesDense, b.report().bytesDense);
  EXPECT_EQ(a.report().compression, b.report().compression);
  EXPECT_EQ(a.report().isHalf, b.report().isHalf);
  EXPECT_EQ(a.report().seconds, b.report().seconds);
  ASSERT_EQ(a.blocks().size(), b.blocks().size());
  for (std::size_t i = 0; i < a.blocks().size(); ++i) {
    EXPECT_EQ(a.blocks()[i].rowBegin, b.blocks()[i].rowBegin);
    EXPECT_EQ(a.blocks()[i].columnEnd, b.blocks()[i].columnEnd);
    EXPECT_EQ(a.blocks()[i].rank, b.blocks()[i].rank);
  }
  for (const int vectors : {1, 3}) {
    EXPECT_TRUE(product(a, false, vectors) == product(b, false, vectors)) << vectors << " vectors";
    EXPECT_TRUE(product(a, true, vectors) == product(b, true, vectors)) << vectors << " vectors, transposed";
  }
}

template <class Scalar>
void requireSameAfterFile(const Shape& shape) {
  const Matrix<Scalar> matrix = makeMatrix<Scalar>(shape);
  const std::string bytes = saved(matrix);
  const Matrix<Scalar> again = loaded<Scalar>(bytes);
  EXPECT_EQ(matrix.report().isHalf, shape.isHalf);
  requireSameMatrix(matrix, again);
  EXPECT_TRUE(saved(again) == bytes) << "a loaded matrix is written as it was read";
}

TEST(HMatrixFile, hasTheSameBitsForAllScalars) {
  for (const double accuracy : {1e-3, 1e-5}) {
    requireSameAfterFile<float>({Storage::Whole, false, 400, 400, accuracy});
    requireSameAfterFile<double>({Storage::Whole, false, 400, 400, accuracy});
    requireSameAfterFile<std::complex<double>>({Storage::Whole, false, 400, 400, accuracy});
  }
}

TEST(HMatrixFile, hasTheSameBitsForReducedStorage) {
  for (const double accuracy : {1e-2, 1e-5, 1e-10}) {
    requireSameAfterFile<double>({Storage::Reduced, false, 400, 400, accuracy});
  }
  requireSameAfterFile<float>({Storage::Reduced, false, 400, 400, 1e-3});
  requireSameAfterFile<std::complex<double>>({Storage::Reduced, false, 400, 400, 1e-3});
}

TEST(HMatrixFile, hasTheSameBitsForHalfOfASymmetricMatrix) {
  requireSameAfterFile<float>({Storage::Whole, true});
  requireSameAfterFile<double>({Storage::Whole, true});
  requireSameAfterFile<double>({Storage::Reduced, true});
  requireSameAfterFile<std::complex<double>>({Storage::Whole, true});
}

TEST(HMatrixFile, hasMatricesOfOtherShapes) {
  requireSameAfterFile<double>({Storage::Whole, false, 300, 130});
  requireSameAfterFile<double>({Storage::Reduced, false, 70, 500});
  requireSameAfterFile<double>({Storage::Whole, false, 1, 1});
}

TEST(HMatrixFile, hasSomeBlocksAndTheirPlaces) {
  const auto points = test::spiralOnSphere(300);
  const auto kernel = test::distanceKernel<double>(
      points, points, [](double r) { return 1 / r; }, 20.0);
  const ClusterTree tree(points, {}, {15});
  const auto blocks = blockLeaves(tree, tree, 2.0);
  for (const std::size_t count : {std::size_t{0}, blocks.size() / 3}) {
    Matrix<double> matrix(tree, tree, {blocks.begin(), blocks.begin() + static_cast<std::ptrdiff_t>(count)}, kernel,
                          HMatrixOptions());
    requireSameMatrix(matrix, loaded<double>(saved(matrix)));
    std::vector<int> rows(matrix.numRows()), columns(matrix.numColumns());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      rows[i] = 3 * static_cast<int>(i) + 1;
    }
    for (std::size_t i = 0; i < columns.size(); ++i) {
      columns[i] = static_cast<int>(columns.size() - i);
    }
    matrix.placeIn(rows, 3 * matrix.numRows() + 1, columns, matrix.numColumns() + 1);
    const std::string bytes = saved(matrix);
    EXPECT_TRUE(saved(loaded<double>(bytes)) == bytes);
    const Vectors<double> x("x", matrix.numColumns() + 1, 1), y("y", 3 * matrix.numRows() + 1, 1);
    loaded<double>(bytes).multiply(Space(), x, y);
  }
}

TEST(HMatrixFile, otherThingsMayStandBeforeAndBehindIt) {
  const Matrix<double> first = makeMatrix<double>({Storage::Whole, false, 60, 60});
  const Matrix<double> second = makeMatrix<double>({Storage::Reduced, false, 50, 70});
  std::stringstream stream("text before", std::ios::in | std::ios::out | std::ios::binary | std::ios::ate);
  first.save(stream);
  second.save(stream);
  stream << "text behind";
  stream.seekg(std::string("text before").size());
  requireSameMatrix(first, Matrix<double>::load(stream));
  requireSameMatrix(second, Matrix<double>::load(stream));
  std::string rest;
  std::getline(stream, rest);
  EXPECT_EQ(rest, "text behind");
}

template <class Scalar>
void requireAllDamageIsFound(const Shape& shape) {
  const Matrix<Scalar> matrix = makeMatrix<Scalar>(shape);
  ASSERT_GT(matrix.report().largestRank(), 0) << "there are t, u and v";
  const std::string bytes = saved(matrix);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string other = bytes;
    other[i] = static_cast<char>(other[i] ^ (i % 9 == 8 ? 0xff : 1 << i % 9));
    ASSERT_NE(refusal<Scalar>(other), "") << "byte " << i << " of " << bytes.size();
  }
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    ASSERT_NE(refusal<Scalar>(bytes.substr(0, length)), "") << length << " bytes of " << bytes.size();
  }
}

TEST(HMatrixFile, everyDamagedByteAndEveryLostEndIsFound) {
  requireAllDamageIsFound<float>({Storage::Reduced, false, 80, 80, 1e-1, 8});
  requireAllDamageIsFound<double>({Storage::Whole, true, 80, 80, 1e-1, 8});
  requireAllDamageIsFound<double>({Storage::Reduced, true, 100, 100, 1e-2, 8});
}

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(HMatrixFile, aRefusalSaysWhy) {
  const std::string bytes = saved(makeMatrix<double>({Storage::Whole, false, 60, 60}));
  EXPECT_TRUE(holds(refusal<float>(bytes), "of double, expected float")) << refusal<float>(bytes);
  EXPECT_TRUE(holds(refusal<std::complex<double>>(bytes), "of double, expected complex<double>"));
  std::string other = bytes;
  other[12] = 7;
  EXPECT_TRUE(holds(refusal<double>(other), "of version 7, expected 1")) << refusal<double>(other);
  other = bytes;
  std::swap(other[8], other[11]);
  std::swap(other[9], other[10]);
  EXPECT_TRUE(holds(refusal<double>(other), "other byte order")) << refusal<double>(other);
  other = "# A text." + bytes;
  EXPECT_TRUE(holds(refusal<double>(other), "begins with '#?A?text', expected 'KomvosHM'")) << refusal<double>(other);
  EXPECT_TRUE(holds(refusal<double>(""), "only 0 bytes")) << refusal<double>("");
  other = bytes.substr(0, bytes.size() - 100);
  EXPECT_TRUE(holds(refusal<double>(other), "are left")) << refusal<double>(other);
  other = bytes;
  other[other.size() - 100] = static_cast<char>(other[other.size() - 100] + 1);
  EXPECT_TRUE(holds(refusal<double>(other), "checksum")) << refusal<double>(other);
  std::ifstream missing("no such file");
  EXPECT_THROW(Matrix<double>::load(missing), BadInput);
  std::ostringstream full;
  full.setstate(std::ios::badbit);
  EXPECT_THROW(makeMatrix<double>({}).save(full), BadInput);
}

/// A section: where its elements begin, and how many bytes they have.
struct Section {
  std::string name;
  std::size_t begin, bytes, bytesOfElement;
};

std::vector<Section> sectionsOf(const std::string& file) {
  std::vector<Section> sections;
  for (std::size_t at = 24; at < file.size();) {
    std::uint64_t numbers[2];
    std::memcpy(numbers, file.data() + at + 8, sizeof numbers);
    const std::string name = file.substr(at, 8);
    sections.push_back({name.substr(0, name.find('\0')), at + 24, numbers[0] * numbers[1], numbers[0]});
    at = sections.back().begin + sections.back().bytes;
  }
  return sections;
}

/// With checksums that are right.
std::string sealed(std::string file, const std::vector<Section>& sections) {
  Impl::Checksum checksum;
  std::size_t done = 0;
  for (const Section& section : sections) {
    if (section.name == "checksum") {
      checksum.add(file.data() + done, section.begin - done);
      const std::uint64_t value = checksum.value();
      std::memcpy(&file[section.begin], &value, sizeof value);
      done = section.begin;
    }
  }
  return file;
}

/// Loads it, and multiplies if that is possible. \return whether it is
template <class Scalar>
bool works(const std::string& bytes) {
  try {
    const Matrix<Scalar> matrix = loaded<Scalar>(bytes);
    // Vectors may have more rows than the matrix has.
    const Vectors<Scalar> x("x", matrix.numColumns(), 1), y("y", matrix.numRows(), 1);
    try {
      matrix.multiply(Space(), x, y);
      matrix.multiplyTransposed(Space(), y, x);
      Space().fence();
    } catch (const PlanMismatch&) {
    }
    return true;
  } catch (const BadInput&) {
    return false;
  }
}

/// Every number but those of values is replaced, under a right checksum.
template <class Scalar>
void requireWrongNumbersDoNoHarm(const Shape& shape) {
  const Matrix<Scalar> matrix = makeMatrix<Scalar>(shape);
  ASSERT_GT(matrix.report().largestRank(), 0) << "there are t, u and v";
  const std::string bytes = saved(matrix);
  const auto sections = sectionsOf(bytes);
  ASSERT_TRUE(sealed(bytes, sections) == bytes);
  int refused = 0, all = 0;
  for (const Section& section : sections) {
    if (section.name == "checksum" || section.name.substr(0, 6) == "values" || section.name == "reals") {
      continue;
    }
    const std::size_t width = section.bytesOfElement == 8 ? 8 : 4;
    for (std::size_t at = section.begin; at < section.begin + section.bytes; at += width) {
      std::int64_t old = 0;
      std::memcpy(&old, bytes.data() + at, width);
      for (const std::int64_t number :
           {std::int64_t{-1}, std::int64_t{0}, old + 1, 2 * old, std::int64_t{std::numeric_limits<int>::max()},
            std::numeric_limits<std::int64_t>::max()}) {
        std::string other = bytes;
        std::memcpy(&other[at], &number, width);
        refused += works<Scalar>(sealed(other, sections)) ? 0 : 1;
        ++all;
      }
    }
  }
  EXPECT_TRUE(works<Scalar>(bytes));
  EXPECT_GT(refused, all / 2) << "of " << all;
}

TEST(HMatrixFile, wrongNumbersUnderARightChecksumDoNoHarm) {
  requireWrongNumbersDoNoHarm<double>({Storage::Whole, false, 60, 90, 1e-1, 8});
  requireWrongNumbersDoNoHarm<double>({Storage::Reduced, true, 100, 100, 1e-2, 8});
  requireWrongNumbersDoNoHarm<float>({Storage::Reduced, false, 80, 80, 1e-1, 8});
  requireWrongNumbersDoNoHarm<std::complex<double>>({Storage::Whole, true, 80, 80, 1e-1, 8});
}

TEST(HMatrixFile, aLengthThatIsNotThereTakesNoMemory) {
  const std::string bytes = saved(makeMatrix<double>({Storage::Whole, false, 60, 60}));
  const auto sections = sectionsOf(bytes);
  for (const Section& section : sections) {
    for (const std::uint64_t count : {std::uint64_t{1} << 40, std::uint64_t{1} << 61, ~std::uint64_t{0}}) {
      std::string other = bytes;
      std::memcpy(&other[section.begin - 8], &count, sizeof count);
      EXPECT_TRUE(holds(refusal<double>(other), "bytes are left")) << section.name << ": " << refusal<double>(other);
    }
  }
}

TEST(Checksum, isThatOfVersionOneHoweverBytesAreCut) {
  std::string bytes;
  for (int i = 0; i < 1000; ++i) {
    bytes += static_cast<char>(i * i % 251);
  }
  Impl::Checksum whole;
  whole.add(bytes.data(), bytes.size());
  EXPECT_EQ(whole.value(), 13933124382153637671U);
  for (std::size_t piece = 1; piece < 100; ++piece) {
    Impl::Checksum sum;
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      sum.add(bytes.data() + at, std::min(piece, bytes.size() - at));
    }
    EXPECT_EQ(sum.value(), whole.value());
  }
  Impl::Checksum longer = whole;
  longer.add("", 1);
  EXPECT_NE(longer.value(), whole.value()) << "zeros at the end count";
}

}  // namespace
}  // namespace Komvos
