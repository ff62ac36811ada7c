/// \file Komvos_TriangleRules.cpp
#include "Komvos_TriangleRules.hpp"

#include <initializer_list>
#include <utility>

namespace Komvos {
namespace {

/// All points that are made by permuting the barycentric coordinates 1 - p - q, p, q.
struct Orbit {
  double weight;
  double p, q;
};

/// \param orbits with p = q: three points; else six
TriangleRule ruleOf(int degree, double centroidWeight, std::initializer_list<Orbit> orbits) {
  TriangleRule rule;
  rule.degree = degree;
  if (centroidWeight > 0) {
    rule.points.push_back({1.0 / 3, 1.0 / 3, centroidWeight});
  }
  for (const Orbit& orbit : orbits) {
    const double w = orbit.weight, p = orbit.p, q = orbit.q, rest = 1 - p - q;
    rule.points.insert(rule.points.end(), {{p, q, w}, {q, rest, w}, {rest, p, w}});
    if (p != q) {
      rule.points.insert(rule.points.end(), {{q, p, w}, {rest, q, w}, {p, rest, w}});
    }
  }
  return rule;
}

std::vector<TriangleRule> makeRules() {
  std::vector<TriangleRule> rules;
  rules.push_back(ruleOf(1, 1, {}));
  rules.push_back(ruleOf(2, 0, {{1.0 / 3, 1.0 / 6, 1.0 / 6}}));
  rules.push_back(ruleOf(4, 0,
                         {{0.223381589678011466, 0.445948490915964886, 0.445948490915964886},
                          {0.109951743655321868, 0.0915762135097707435, 0.0915762135097707435}}));
  rules.push_back(ruleOf(5, 0.225,
                         {{0.132394152788506181, 0.470142064105115090, 0.470142064105115090},
                          {0.125939180544827153, 0.101286507323456339, 0.101286507323456339}}));
  rules.push_back(ruleOf(8, 0.144315607677787168,
                         {{0.0950916342672846248, 0.459292588292723156, 0.459292588292723156},
                          {0.103217370534718250, 0.170569307751760207, 0.170569307751760207},
                          {0.0324584976231980803, 0.0505472283170309755, 0.0505472283170309755},
                          {0.0272303141744349943, 0.00839477740995760534, 0.263112829634638113}}));
  rules.push_back(ruleOf(12, 0,
                         {{0.0257310664404553354, 0.488217389773804883, 0.488217389773804883},
                          {0.0436925445380384021, 0.439724392294460273, 0.439724392294460273},
                          {0.0628582242178851004, 0.271210385012115922, 0.271210385012115922},
                          {0.0347961129307089430, 0.127576145541585925, 0.127576145541585925},
                          {0.00616626105155901723, 0.0213173504532103702, 0.0213173504532103702},
                          {0.0403715577663809295, 0.115343494534697999, 0.275713269685514194},
                          {0.0223567732023034457, 0.0228383322222570296, 0.281325580989939548},
                          {0.0173162311086588924, 0.0257340505483302282, 0.116251915907597141}}));
  return rules;
}

}  // namespace

const std::vector<TriangleRule>& triangleRules() {
  static const std::vector<TriangleRule> rules = makeRules();
  return rules;
}

}  // namespace Komvos
