// The few functions of NVRTC and nvJitLink that are needed, by name.
#include "compiler/codegen/cuda/CudaLibraries.h"

#include "runtime/support/SharedLibrary.h"

#include <array>

using namespace llvm;

namespace hydra::cuda {

using support::SharedLibrary;

namespace {

/// Of functions whose symbols have a version: the newest.
template <typename Function>
Function *newest(const SharedLibrary &library, const char *name, ArrayRef<const char *> versions) {
  for (const char *version : versions)
    if (auto *found = library.get<Function>((Twine("__") + name + version).str().c_str()))
      return found;
  return library.get<Function>(name);
}

Error missing(const char *what, const char *why) {
  return createStringError(std::string("cannot find ") + what + " of CUDA 13, which " + why);
}

} // namespace

static const SharedLibrary &sourceCompiler() {
  static const SharedLibrary nvrtc(
      {"libnvrtc.so.13", "/usr/local/cuda/lib64/libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"});
  return nvrtc;
}
static const SharedLibrary &linkerLibrary() {
  static const SharedLibrary linker(
      {"libnvJitLink.so.13", "/usr/local/cuda/lib64/libnvJitLink.so.13", "libnvJitLink.so"});
  return linker;
}
constexpr std::array<const char *, 2> kLinkerVersions = {"_13_0", "_12_8"};

/// Of a function that reports a major and a minor version.
template <typename Number, typename Function>
static std::string versionText(const char *name, Function *function) {
  Number major = 0, minor = 0;
  if (!function || function(&major, &minor) != 0)
    return "";
  return (Twine(name) + " " + Twine(major) + "." + Twine(minor)).str();
}

/// Options that change the code are part of the version. Lambdas of templates are device
/// code without being called so. Generated code has names that nothing reads: of an error, only the
/// error is told.
static constexpr std::array<const char *, 4> kSourceOptions = {
    "--std=c++17", "--extra-device-vectorization", "--device-as-default-execution-space",
    "--disable-warnings"};
static constexpr const char *kAssembleOption = "-O3";

std::string sourceCompilerVersion() {
  if (!sourceCompiler())
    return "";
  std::string text =
      versionText<int>("NVRTC", sourceCompiler().get<int(int *, int *)>("nvrtcVersion"));
  for (const char *option : kSourceOptions)
    text += text.empty() ? "" : std::string(" ") + option;
  return text;
}

std::string assemblerVersion() {
  if (!linkerLibrary())
    return "";
  std::string text = versionText<unsigned>(
      "nvJitLink",
      newest<int(unsigned *, unsigned *)>(linkerLibrary(), "nvJitLinkVersion", kLinkerVersions));
  return text.empty() ? text : text + " " + kAssembleOption;
}

Expected<CompiledSource> compileSource(const std::string &source, const std::string &architecture) {
  const SharedLibrary &nvrtc = sourceCompiler();
  if (!nvrtc)
    return missing("NVRTC (libnvrtc.so)", "compiles attention and copies for GPUs");
  using Program = void *;
  auto *create = nvrtc.get<int(Program *, const char *, const char *, int, const char *const *,
                               const char *const *)>("nvrtcCreateProgram");
  auto *compile = nvrtc.get<int(Program, int, const char *const *)>("nvrtcCompileProgram");
  auto *destroy = nvrtc.get<int(Program *)>("nvrtcDestroyProgram");
  using Size = int(Program, size_t *);
  using Get = int(Program, char *);
  auto read = [&](Program program, const char *size, const char *get) {
    size_t bytes = 0;
    std::vector<uint8_t> text;
    if (nvrtc.get<Size>(size)(program, &bytes) == 0 && bytes > 0) {
      text.resize(bytes);
      nvrtc.get<Get>(get)(program, reinterpret_cast<char *>(text.data()));
    }
    return text;
  };
  Program program = nullptr;
  if (create(&program, source.c_str(), "hydra_templates.cu", 0, nullptr, nullptr) != 0)
    return createStringError("NVRTC refuses to start");
  std::string target = "--gpu-architecture=" + architecture;
  SmallVector<const char *, 8> options{target.c_str()};
  options.append(kSourceOptions.begin(), kSourceOptions.end());
  int status = compile(program, static_cast<int>(options.size()), options.data());
  if (status != 0) {
    std::vector<uint8_t> log = read(program, "nvrtcGetProgramLogSize", "nvrtcGetProgramLog");
    destroy(&program);
    return createStringError("NVRTC: " + std::string(log.begin(), log.end()));
  }
  CompiledSource result{read(program, "nvrtcGetCUBINSize", "nvrtcGetCUBIN"),
                        read(program, "nvrtcGetPTXSize", "nvrtcGetPTX")};
  destroy(&program);
  return result;
}

Expected<std::optional<std::vector<uint8_t>>> assemble(const std::string &ptx,
                                                       const std::string &architecture) {
  const SharedLibrary &linker = linkerLibrary();
  if (!linker)
    return std::nullopt;
  const std::array<const char *, 2> &versions = kLinkerVersions;
  using Handle = void *;
  auto *create =
      newest<int(Handle *, uint32_t, const char **)>(linker, "nvJitLinkCreate", versions);
  auto *add = newest<int(Handle, int, const void *, size_t, const char *)>(
      linker, "nvJitLinkAddData", versions);
  auto *complete = newest<int(Handle)>(linker, "nvJitLinkComplete", versions);
  auto *size = newest<int(Handle, size_t *)>(linker, "nvJitLinkGetLinkedCubinSize", versions);
  auto *get = newest<int(Handle, void *)>(linker, "nvJitLinkGetLinkedCubin", versions);
  auto *logSize = newest<int(Handle, size_t *)>(linker, "nvJitLinkGetErrorLogSize", versions);
  auto *log = newest<int(Handle, char *)>(linker, "nvJitLinkGetErrorLog", versions);
  auto *destroy = newest<int(Handle *)>(linker, "nvJitLinkDestroy", versions);
  if (!create || !add || !complete || !size || !get || !destroy)
    return std::nullopt;
  constexpr int kPtx = 2; // NVJITLINK_INPUT_PTX
  std::string target = "-arch=" + architecture;
  std::array<const char *, 2> options = {target.c_str(), kAssembleOption};
  Handle handle = nullptr;
  if (create(&handle, options.size(), options.data()) != 0)
    return createStringError("nvJitLink refuses " + architecture);
  if (add(handle, kPtx, ptx.c_str(), ptx.size() + 1, "hydra.ptx") != 0 || complete(handle) != 0) {
    size_t bytes = 0;
    std::string text;
    if (logSize && log && logSize(handle, &bytes) == 0 && bytes > 0) {
      text.resize(bytes);
      log(handle, text.data());
    }
    destroy(&handle);
    return createStringError("nvJitLink: " + text);
  }
  size_t bytes = 0;
  size(handle, &bytes);
  std::vector<uint8_t> cubin(bytes);
  get(handle, cubin.data());
  destroy(&handle);
  return cubin;
}

} // namespace hydra::cuda
