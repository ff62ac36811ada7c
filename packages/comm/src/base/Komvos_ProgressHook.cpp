#include "Komvos_ProgressHook.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace Komvos::Impl {

namespace {

std::vector<ProgressHook*>& active() {
  static std::vector<ProgressHook*> hooks;
  return hooks;
}

}  // namespace

ProgressHook::ProgressHook(std::function<void()> work) : work_(std::move(work)) {}

ProgressHook::~ProgressHook() { switchOn(false); }

void ProgressHook::switchOn(bool on) {
  if (on == on_) {
    return;
  }
  on_ = on;
  std::vector<ProgressHook*>& hooks = active();
  on ? hooks.push_back(this) : static_cast<void>(hooks.erase(std::find(hooks.begin(), hooks.end(), this)));
}

bool ProgressHook::any() { return !active().empty(); }

void ProgressHook::runAll() {
  for (std::size_t i = 0; i < active().size(); ++i) {  // one may switch itself off
    active()[i]->work_();
  }
}

}  // namespace Komvos::Impl
