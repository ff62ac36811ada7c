#include <nlohmann/json.hpp>

#include "bem/bem_report.hpp"

namespace Komvos::Program {

namespace {

using Json = nlohmann::ordered_json;

Json pointToJson(const Point3& p) { return {p.x, p.y, p.z}; }

Json matrixToJson(const BemReport& r) {
  const HMatrixOperatorReport& m = r.matrix;
  return {{"unknowns", r.triangles},
          {"complex", r.isComplex},
          {"accuracy", r.accuracy},
          {"eta", r.eta},
          {"leaf_size", r.leafSize},
          {"approximation", r.approximation},
          {"cluster_split", r.clusterSplit},
          {"storage", r.storage},
          {"half_of_symmetric", m.isHalf},
          {"depth", r.depth},
          {"low_rank_blocks", m.numLowRank},
          {"dense_blocks", m.numDense},
          {"largest_rank", m.largestRank()},
          {"blocks_of_rank", m.blocksOfRank},
          {"bytes", m.bytes},
          {"bytes_dense_blocks", m.bytesDense},
          {"part_of_dense_matrix", m.compression},
          {"bytes_of_mpi_rank", m.bytesOfRank},
          {"imbalance", m.imbalance()},
          {"gathered_values_of_mpi_rank", m.gatheredOfRank},
          {"sent_back_values_of_mpi_rank", m.sentBackOfRank},
          {"error", r.error.relative},
          {"error_rows", r.error.rows},
          {"error_vectors", r.error.vectors}};
}

Json productsToJson(const ProductTimes& p) {
  if (p.count == 0) {
    return nullptr;
  }
  return {{"count", p.count},
          {"seconds", p.seconds},
          {"bytes", p.bytes},
          {"bytes_per_second", p.bandwidth()},
          {"read_seconds", p.readSeconds},
          {"read_bytes", p.readBytes},
          {"read_bytes_per_second", p.readBandwidth()}};
}

Json solveToJson(const BemSolve& s) {
  const HMatrixPreconditionerReport& p = s.preconditionerReport;
  Json json{{"solver", s.solver},
            {"variant", s.variant.empty() ? Json(nullptr) : Json(s.variant)},
            {"preconditioner",
             {{"kind", s.preconditioner},
              {"bytes", p.bytes},
              {"largest_block", p.largestBlock},
              {"largest_rank", p.largestRank},
              {"seconds", p.seconds}}},
            {"right_hand_sides", s.rightHandSides},
            {"groups", s.groups},
            {"tolerance", s.tolerance},
            {"max_iterations", s.maxIterations},
            {"iterations", s.iterations},
            {"restarts", s.restarts},
            {"products", s.products},
            {"true_residual", s.trueResidual},
            {"belos_residual", s.belosResidual},
            {"belos_converged", s.belosConverged},
            {"converged", s.converged()},
            {"seconds", s.seconds},
            {"seconds_of",
             {{"products", s.parts.product},
              {"exchanges", s.parts.exchange},
              {"preconditioner", s.parts.preconditioner},
              {"vectors_and_reductions", s.parts.rest}}}};
  if (!s.history.computed.empty()) {
    json["residuals"] = {{"estimated", s.history.estimated}, {"computed", s.history.computed}};
  }
  return json;
}

Json physicsToJson(const BemReport& r) {
  const PhysicsReport& p = r.physics;
  Json json = Json::object();
  if (!p.bodies.empty()) {
    json["bodies"] = Json::array();
    for (const BodyResult& one : p.bodies) {
      json["bodies"].push_back({{"area", one.area},
                                {"potential", one.potential},
                                {"charge", one.charge},
                                {"dipole_moment", pointToJson(one.dipole)}});
    }
  }
  if (r.problem == "potential") {
    json["energy"] = p.energy;
    json["capacitance_matrix"] = p.capacitance.empty() ? Json(nullptr) : Json(p.capacitance);
  } else if (r.problem == "interior") {
    json["points"] = p.interiorPoints;
    json["error"] = p.interiorPoints > 0 ? Json(p.interiorError) : Json(nullptr);
  } else if (r.problem == "none") {
    json["error"] = p.solutionError;
  }
  json["known"] = Json::array();
  for (const KnownValue& one : p.known) {
    json["known"].push_back({{"name", one.name},
                             {"formula", one.formula},
                             {"unit", one.unit},
                             {"value", one.value},
                             {"expected", one.expected},
                             {"relative_error", one.error}});
  }
  return json;
}

}  // namespace

std::string toJson(const BemReport& r) {
  Json json{{"komvos_version", KOMVOS_VERSION},
            {"geometry",
             {{"name", r.geometry},
              {"triangles", r.triangles},
              {"vertices", r.vertices},
              {"bodies", r.bodies},
              {"area", r.area},
              {"warnings", r.faults}}},
            {"ranks", r.ranks},
            {"nodes", r.ranksPerNode.size()},
            {"ranks_per_node", r.ranksPerNode},
            {"topology_source", r.topologyGiven ? "given" : "detected"},
            {"route", r.route},
            {"pairing", r.pairing},
            {"on_node", r.intraNode},
            {"tuning", r.tuning},
            {"kernel", r.kernel},
            {"problem", r.problem == "none" ? Json(nullptr) : Json(r.problem)},
            {"matrix", matrixToJson(r)},
            {"mesh_seconds", r.meshSeconds},
            {"setup_seconds", r.setupSeconds},
            {"product", productsToJson(r.products)},
            {"solve", r.solve ? solveToJson(*r.solve) : Json(nullptr)},
            {"result", r.solve ? physicsToJson(r) : Json(nullptr)}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace Komvos::Program
