// dlopen of libhydra-gloo.so, and the watch over its calls.
#include "runtime/ranks/Plugin.h"

#include "runtime/ranks/GlooFunction.h"
#include "runtime/support/Shown.h"

#include <dlfcn.h>

#include <filesystem>

using namespace hydra::runtime;
using hydra::support::fail;
using hydra::support::shownPath;
namespace fs = std::filesystem;

namespace {

constexpr const char *kLibrary = "libhydra-gloo.so";

/// In the folder of the program, or in `lib` beside it. It stays loaded.
MakeGlooCommunicator *loadLibrary() {
  std::error_code code;
  const fs::path program = fs::read_symlink("/proc/self/exe", code).parent_path();
  fs::path path;
  for (const fs::path &folder : {program, program.parent_path() / "lib"})
    if (path.empty() && fs::exists(folder / kLibrary, code))
      path = folder / kLibrary;
  if (path.empty())
    fail("plans for several ranks on CPUs need {}, which is neither in {} nor in {}", kLibrary,
         shownPath(program), shownPath(program.parent_path() / "lib"));
  void *library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    fail("cannot load {}: {}", shownPath(path), ::dlerror());
  void *function = ::dlsym(library, "hydraMakeGlooCommunicator");
  if (!function)
    fail("{} is not the library that belongs to this program", shownPath(path));
  return reinterpret_cast<MakeGlooCommunicator *>(function);
}

/// Tells the channel what this rank waits in.
class Watched final : public Communicator {
public:
  Watched(std::vector<NamedAxis> mesh, Channel &channel, std::unique_ptr<Communicator> inner)
      : mesh(std::move(mesh)), channel(channel), inner(std::move(inner)) {}

  uint32_t rank() const override { return inner->rank(); }
  uint32_t size() const override { return inner->size(); }
  void allGather(const Exchange &exchange) override {
    const Channel::Waiting waiting = waitingIn("all_gather", exchange);
    inner->allGather(exchange);
  }
  void allToAll(const Exchange &exchange) override {
    const Channel::Waiting waiting = waitingIn("all_to_all", exchange);
    inner->allToAll(exchange);
  }

private:
  Channel::Waiting waitingIn(const char *what, const Exchange &exchange) {
    return {&channel,
            {.what = what,
             .axis = mesh[exchange.axis].name.c_str(),
             .number = ++calls,
             .bytes = exchange.bytes,
             .place = exchange.place}};
  }

  const std::vector<NamedAxis> mesh;
  Channel &channel;
  uint64_t calls = 0;
  std::unique_ptr<Communicator> inner;
};

} // namespace

std::unique_ptr<Communicator> hydra::runtime::connectRanks(std::vector<NamedAxis> mesh,
                                                           Channel &channel) {
  GlooOptions options{
      .rank = channel.rank(), .mesh = {}, .address = channel.localAddress(), .store = &channel};
  for (const NamedAxis &axis : mesh)
    options.mesh.push_back(axis.size);
  std::unique_ptr<Communicator> inner(loadLibrary()(options));
  return std::make_unique<Watched>(std::move(mesh), channel, std::move(inner));
}
