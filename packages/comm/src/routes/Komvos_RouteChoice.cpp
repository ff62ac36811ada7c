#include "Komvos_RouteChoice.hpp"

#include <charconv>
#include <system_error>
#include <utility>
#include <vector>

#include "Komvos_AxisRoute.hpp"
#include "Komvos_Error.hpp"
#include "Komvos_NodeTopology.hpp"
#include "Komvos_SocketRoute.hpp"
#include "Komvos_SplitRoute.hpp"
#include "Komvos_ThreeStepRoute.hpp"
#include "Komvos_TwoStepRoute.hpp"

namespace Komvos {

namespace {

using Kind = RouteChoice::Kind;

constexpr std::pair<Kind, const char*> kindNames[] = {
    {Kind::standard, "standard"}, {Kind::twoStep, "two-step"}, {Kind::threeStep, "three-step"}, {Kind::split, "split"},
    {Kind::axis, "axis"},         {Kind::sockets, "sockets"},  {Kind::automatic, "auto"}};

[[noreturn]] void refuse(const std::string& text) {
  throw BadInput("route '" + text +
                 "' is not one of standard, two-step, three-step, split, split:V, axis, axis:C,X,Y,Z, sockets, auto "
                 "(V, C, X, Y, Z positive numbers)");
}

/// "3,4" as {3, 4}; empty if that is not all there is, or a number is not positive.
std::vector<int> positiveNumbers(const std::string& text) {
  std::vector<int> numbers;
  const char* next = text.data();
  const char* const end = next + text.size();
  while (true) {
    int number = 0;
    const auto [after, code] = std::from_chars(next, end, number);
    if (code != std::errc() || number < 1 || (after != end && *after != ',')) {
      return {};
    }
    numbers.push_back(number);
    if (after == end) {
      return numbers;
    }
    next = after + 1;
  }
}

}  // namespace

RouteChoice parseRoute(const std::string& text) {
  const std::size_t colon = text.find(':');
  const std::string name = text.substr(0, colon);
  for (const auto& [kind, kindName] : kindNames) {
    if (name != kindName) {
      continue;
    }
    RouteChoice choice;
    choice.kind = kind;
    if (colon == std::string::npos) {
      return choice;
    }
    const std::vector<int> numbers = positiveNumbers(text.substr(colon + 1));
    if (kind == Kind::axis && numbers.size() == 4) {
      choice.factors = AxisFactors{numbers[0], numbers[1], numbers[2], numbers[3]};
      return choice;
    }
    if (kind == Kind::split && numbers.size() == 1) {
      if (numbers[0] != SplitRoute::defaultSplitValues) {  // so that equal choices compare equal
        choice.splitValues = numbers[0];
      }
      return choice;
    }
  }
  refuse(text);
}

std::string toString(const RouteChoice& choice) {
  std::string text;
  for (const auto& [kind, kindName] : kindNames) {
    if (kind == choice.kind) {
      text = kindName;
    }
  }
  if (choice.kind == Kind::axis && choice.factors) {
    text += ":" + choice.factors->text();
  }
  if (choice.kind == Kind::split &&
      choice.splitValues.value_or(SplitRoute::defaultSplitValues) != SplitRoute::defaultSplitValues) {
    text += ":" + std::to_string(*choice.splitValues);
  }
  return text;
}

std::unique_ptr<Route> makeRoute(const RouteChoice& choice, const NodeTopology& nodes, Pairing pairing,
                                 const NodeTopology* sockets) {
  switch (choice.kind) {
    case Kind::standard:
      return std::make_unique<StandardRoute>();
    case Kind::twoStep:
      return std::make_unique<TwoStepRoute>(nodes);
    case Kind::threeStep:
      return std::make_unique<ThreeStepRoute>(nodes, pairing);
    case Kind::split:
      return std::make_unique<SplitRoute>(nodes, pairing, choice.splitValues.value_or(SplitRoute::defaultSplitValues));
    case Kind::axis:
      return std::make_unique<AxisRoute>(choice.factors ? *choice.factors : AxisFactors::fitting(nodes),
                                         nodes.numRanks());
    case Kind::sockets:
      if (sockets == nullptr) {
        throw BadInput(
            "route sockets: nothing says which ranks share a socket; they are not looked up where the nodes are given");
      }
      return std::make_unique<SocketRoute>(nodes, *sockets, pairing);
    case Kind::automatic:
      break;
  }
  throw BadInput("route auto stands for a choice among routes, it is none itself");
}

}  // namespace Komvos
