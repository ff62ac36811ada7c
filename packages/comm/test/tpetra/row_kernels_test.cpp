// The kernels of RowTransfer against plain loops: on the default device, and on the test device.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "Komvos_GlobalIdTable.hpp"
#include "Komvos_MergedColumns.hpp"
#include "Komvos_RowKernels.hpp"
#include "exchange/device_under_test.hpp"
#include "support/test_patterns.hpp"

namespace {

using namespace Komvos::Impl;
using KomvosTest::Random;
using Device = KomvosTest::DeviceUnderTest;
using Space = Device::execution_space;
using Memory = BufferSpace<Space>::type;

template <class T>
std::vector<T> onHost(const Kokkos::View<T*, Memory>& view) {
  const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), view);
  return {host.data(), host.data() + host.size()};
}

/// Rows with global columns: many short ones, some empty, one long, and one that is nearly as long as an item.
struct Rows {
  std::vector<std::size_t> offset{0};
  std::vector<long long> columns;
  std::vector<double> values;

  explicit Rows(int count, int longest) {
    Random random(static_cast<unsigned>(count));
    for (int row = 0; row < count; ++row) {
      const int length = row == 5 ? longest : row == 9 ? 900 : row % 4 == 0 ? 0 : random.below(9);
      for (int k = 0; k < length; ++k) {
        columns.push_back((1LL << 40) + random.below(1 << 20));
        values.push_back(random.unit());
      }
      offset.push_back(columns.size());
    }
  }
  std::int64_t length(int row) const { return static_cast<std::int64_t>(offset[row + 1] - offset[row]); }
};

struct TimesThree {
  KOKKOS_INLINE_FUNCTION long long getGlobalElement(int row) const { return 3LL * row; }
};

/// All rows packed in reverse order, and unpacked into their own order.
class Message {
 public:
  using Pack = PackRows<double, ArrayRows<double, Kokkos::View<std::size_t*, Memory>, Kokkos::View<long long*, Memory>>,
                        TimesThree, Memory>;
  using Unpack = UnpackRows<double, long long, Memory>;

  Message(const Rows& rows, bool withColumns) : format_{withColumns}, sent_(rows) {
    const int count = static_cast<int>(rows.offset.size()) - 1;
    for (int i = 0; i < count; ++i) {
      const int row = count - 1 - i;
      order_.push_back(row);
      lengths_.push_back(rows.length(row));
      first_.push_back(words_);
      ids_.push_back(3LL * row);
      to_.push_back(static_cast<std::int64_t>(rows.offset[row]));
      words_ += format_.words(rows.length(row));
    }
    buffer_ = decltype(buffer_)("buffer", words_);
    const auto offset = deviceList<Memory>("offset", rows.offset);
    const auto columns = deviceList<Memory>("columns", rows.columns);
    const auto values = deviceList<Memory>("values", rows.values);
    const Pack pack{format_,
                    {offset, columns, values.data()},
                    {},
                    deviceList<Memory>("row", order_),
                    deviceList<Memory>("first", first_),
                    buffer_.data()};
    packRows(Space(), pack, RowItems<Memory>(lengths_, entriesPerItem<Space>()));
    fence(Space(), "packed before it is read");
  }

  /// Changes a word, as a faulty network might.
  void spoil(std::int64_t word) {
    const auto place = Kokkos::subview(buffer_, word);
    std::uint64_t value = 0;
    Kokkos::deep_copy(value, place);
    Kokkos::deep_copy(place, value ^ 1U);
  }
  std::int64_t firstWord(int row) const {
    return first_[static_cast<std::size_t>(std::find(order_.begin(), order_.end(), row) - order_.begin())];
  }
  const RowFormat<double>& format() const { return format_; }

  /// \return the row that is not as it was packed; -1: none
  int unpack() {
    columns = decltype(columns)("columns", sent_.columns.size());
    values = decltype(values)("values", sent_.values.size());
    const Kokkos::View<int, Memory> wrong("wrong");
    Kokkos::deep_copy(wrong, std::numeric_limits<int>::max());
    const Unpack kernel{format_,
                        buffer_.data(),
                        deviceList<Memory>("first", first_),
                        deviceList<Memory>("lengths", lengths_),
                        deviceList<Memory>("to", to_),
                        deviceList<Memory>("ids", ids_),
                        Kokkos::View<std::uint64_t*, Memory>("sums", order_.size()),
                        columns.data(),
                        values.data(),
                        wrong};
    if (format_.withColumns) {
      unpackRows(Space(), kernel, lengths_);
    } else {
      Kokkos::parallel_for("compare", range(Space(), 0, static_cast<int>(order_.size())),
                           CompareLabels<Unpack>{kernel});
    }
    fence(Space(), "unpacked before it is read");
    int found = 0;
    Kokkos::deep_copy(found, wrong);
    return found == std::numeric_limits<int>::max() ? -1 : order_[static_cast<std::size_t>(found)];
  }
  const std::uint64_t* words() const { return buffer_.data(); }
  std::vector<int> valuePlaces() const {  // of each entry, in doubles of the buffer
    std::vector<int> places(sent_.values.size());
    for (std::size_t i = 0; i < order_.size(); ++i) {
      std::iota(places.begin() + to_[i], places.begin() + to_[i] + lengths_[i],
                static_cast<int>(first_[i] + format_.valuesAt(lengths_[i])));
    }
    return places;
  }

  Kokkos::View<long long*, Memory> columns;
  Kokkos::View<double*, Memory> values;

 private:
  RowFormat<double> format_;
  const Rows& sent_;
  std::vector<int> order_;
  std::vector<std::int64_t> lengths_, first_, to_;
  std::vector<long long> ids_;
  std::int64_t words_ = 0;
  Kokkos::View<std::uint64_t*, Memory> buffer_;
};

TEST(RowKernels, UnpackWhatTheyPack) {
  for (const int longest : {3, 1000, 20000}) {  // in one piece, and in several
    const Rows rows(60, longest);
    Message message(rows, true);
    EXPECT_EQ(-1, message.unpack());
    EXPECT_EQ(rows.columns, onHost(message.columns));
    EXPECT_EQ(rows.values, onHost(message.values));
    for (int row = 0; row < 60; ++row) {
      if (rows.length(row) == 0) {
        continue;
      }
      const std::int64_t n = rows.length(row), first = message.firstWord(row);
      for (const std::int64_t word :
           {first, first + 1, first + message.format().header, first + message.format().valuesAt(n) + n - 1}) {
        message.spoil(word);
        EXPECT_EQ(row, message.unpack()) << "word " << word - first << " of a row of " << n;
        message.spoil(word);
      }
    }
    EXPECT_EQ(-1, message.unpack());
  }
}

TEST(RowKernels, MoveValuesAlone) {
  const Rows rows(60, 20000);
  Message message(rows, false);
  EXPECT_EQ(-1, message.unpack());
  message.spoil(message.firstWord(7));
  EXPECT_EQ(7, message.unpack());
  message.spoil(message.firstWord(7));
  // Entry by entry, in long segments, and as sums of what arrived and what is here.
  std::vector<int> arrived = message.valuePlaces();
  for (int& place : arrived) {
    place = ~place;
  }
  const int entries = static_cast<int>(arrived.size());
  const auto here = deviceList<Memory>("here", rows.values);
  const auto* const doubles = reinterpret_cast<const double*>(message.words());
  const Kokkos::View<double*, Memory> target("target", entries);
  const auto run = [&](const Kokkos::View<int*, Memory>& offset, const std::vector<int>& sources, int values) {
    Kokkos::deep_copy(target, -1.0);
    ValueSources<Memory>(offset, sources, entriesPerItem<Space>())
        .run(Space(), here.data(), doubles, target.data(), values);
    fence(Space(), "values are there before they are read");
    return onHost(target);
  };
  EXPECT_EQ(rows.values, run({}, arrived, entries));
  std::vector<int> inTurn;  // no segment is longer than one entry
  for (int e = 0; e < entries; ++e) {
    inTurn.push_back(e % 2 == 0 ? e : arrived[e]);
  }
  EXPECT_EQ(rows.values, run({}, inTurn, entries));
  std::vector<int> sourceOffset{0}, sources;
  std::vector<double> sums;
  for (int e = 0; e < entries; ++e) {
    sources.push_back(e);
    sums.push_back(rows.values[e]);
    for (int k = 0; k < e % 3; ++k) {
      sources.push_back(arrived[(7 * e + k) % entries]);
      sums.back() += rows.values[(7 * e + k) % entries];
    }
    sourceOffset.push_back(static_cast<int>(sources.size()));
  }
  EXPECT_EQ(sums, run(deviceList<Memory>("sourceOffset", sourceOffset), sources, entries));
}

/// Rows with local columns.
struct LocalRows {
  std::vector<std::int64_t> offset{0};
  std::vector<int> columns;

  LocalRows(int rows, int longest, bool sorted, bool repeats) {
    Random random(static_cast<unsigned>(longest));
    for (int row = 0; row < rows; ++row) {
      std::vector<int> mine(static_cast<std::size_t>(row % 5 == 0 ? 0 : 1 + random.below(longest)));
      for (std::size_t k = 0; k < mine.size(); ++k) {
        mine[k] = repeats ? random.below(longest) : static_cast<int>(3 * k) + random.below(3);
      }
      if (!sorted && !repeats) {
        random.shuffle(mine);
      }
      columns.insert(columns.end(), mine.begin(), mine.end());
      offset.push_back(static_cast<std::int64_t>(columns.size()));
    }
  }
};

TEST(MergedColumns, AreThoseOfAStableSort) {
  struct Case {
    bool sorted, repeats;
  };
  for (const Case one : {Case{true, false}, Case{false, false}, Case{false, true}}) {
    for (const int longest : {1, 7, 80, 700}) {
      const LocalRows rows(50, longest, one.sorted, one.repeats);
      std::vector<std::size_t> rowOffset{0};
      std::vector<int> columns, sourceOffset, source;
      for (std::size_t row = 0; row + 1 < rows.offset.size(); ++row) {
        std::vector<int> places(static_cast<std::size_t>(rows.offset[row + 1] - rows.offset[row]));
        std::iota(places.begin(), places.end(), static_cast<int>(rows.offset[row]));
        std::stable_sort(places.begin(), places.end(), [&](int a, int b) { return rows.columns[a] < rows.columns[b]; });
        for (std::size_t k = 0; k < places.size(); ++k) {
          if (k == 0 || rows.columns[places[k]] != columns.back()) {
            columns.push_back(rows.columns[places[k]]);
            sourceOffset.push_back(static_cast<int>(source.size()));
          }
          source.push_back(places[k]);
        }
        rowOffset.push_back(columns.size());
      }
      sourceOffset.push_back(static_cast<int>(source.size()));
      using Locals = Kokkos::View<int*, Device>;
      const auto merged = mergeColumns<int, Device>(deviceList<Memory>("offset", rows.offset),
                                                    Locals(deviceList<Device::memory_space>("columns", rows.columns)));
      SCOPED_TRACE(std::to_string(longest) + " entries at most" + (one.sorted ? ", sorted" : "") +
                   (one.repeats ? ", repeated" : ""));
      EXPECT_EQ(one.sorted || longest == 1, merged.inOrder);
      EXPECT_EQ(rowOffset, onHost(Kokkos::View<std::size_t*, Memory>(merged.rowOffset)));
      EXPECT_EQ(columns, onHost(Kokkos::View<int*, Memory>(merged.columns)));
      if (!merged.inOrder) {
        EXPECT_EQ(source, onHost(merged.source));
        EXPECT_EQ(columns.size() < source.size() ? sourceOffset : std::vector<int>(), onHost(merged.sourceOffset));
      }
    }
  }
}

using IdTable = GlobalIdTable<long long, Device>;

struct InsertIds {
  IdTable table;
  Kokkos::View<const long long*, Memory> ids;
  Kokkos::View<int*, Memory> slots;
  KOKKOS_INLINE_FUNCTION void operator()(int i) const { slots(i) = table.insert(ids(i)); }
};

/// The slot of each.
std::vector<int> insertAll(const IdTable& table, const std::vector<long long>& ids) {
  const Kokkos::View<int*, Memory> slots("slots", ids.size());
  Kokkos::parallel_for("insert", Kokkos::RangePolicy<Space>(0, static_cast<int>(ids.size())),
                       InsertIds{table, deviceList<Memory>("ids", ids), slots});
  Kokkos::fence();
  return onHost(slots);
}

/// So many different ones, all over the place, each several times, in disorder.
std::vector<long long> repeatedIds(int different, unsigned seed) {
  Random random(seed);
  std::set<long long> chosen;
  while (static_cast<int>(chosen.size()) < different) {
    chosen.insert(static_cast<long long>(random.below(1 << 30)) << random.below(20));
  }
  std::vector<long long> ids;
  for (int times = 0; times < 7; ++times) {
    ids.insert(ids.end(), chosen.begin(), chosen.end());
  }
  random.shuffle(ids);
  return ids;
}

TEST(GlobalIdTable, HasASlotForEachId) {
  for (const int different : {0, 1, 511, 513, 5000}) {
    SCOPED_TRACE(different);
    const std::vector<long long> ids = repeatedIds(different, 3);
    const IdTable table(static_cast<std::size_t>(different));
    const std::vector<int> slots = insertAll(table, ids);
    EXPECT_FALSE(table.overflowed());
    std::map<long long, int> slotOf;
    std::set<int> taken;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      EXPECT_EQ(slotOf.emplace(ids[i], slots[i]).first->second, slots[i]) << ids[i];
      taken.insert(slots[i]);
    }
    EXPECT_EQ(taken.size(), static_cast<std::size_t>(different));
    EXPECT_TRUE(taken.empty() || (*taken.begin() >= 0 && *taken.rbegin() < table.numSlots()));
    std::map<long long, int> contents;
    for (const auto& [id, slot] : table.contents()) {
      EXPECT_TRUE(contents.emplace(id, slot).second) << id << " is there twice";
    }
    EXPECT_EQ(contents, slotOf);
  }
}

TEST(GlobalIdTable, SaysWhenItIsFull) {
  const std::vector<long long> ids = repeatedIds(3000, 5);
  const IdTable table(10);
  const std::vector<int> slots = insertAll(table, ids);
  EXPECT_TRUE(table.overflowed());
  EXPECT_NE(std::count(slots.begin(), slots.end(), IdTable::full), 0);
  EXPECT_GE(table.contents().size(), 512u) << "half of the slots are for use";
}

TEST(GlobalIdTable, TakesTheIdThatMarksEmptySlots) {
  const IdTable table(10);
  const std::vector<int> slots = insertAll(table, {7, -1, 7, -1});
  EXPECT_EQ(slots[0], slots[2]);
  EXPECT_EQ(slots[1], slots[3]);
  EXPECT_NE(slots[0], slots[1]);
  EXPECT_LT(slots[1], table.numSlots());
  EXPECT_EQ(table.contents().size(), 2u);
  EXPECT_FALSE(table.overflowed());
}

}  // namespace
