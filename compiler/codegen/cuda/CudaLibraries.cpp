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

namespace {

/// What a compiler made of a text, and what it said.
template <typename Code> struct Compiled {
  Code code;
  std::string log;
};

/// Without the zero at its end.
std::string textOf(ArrayRef<uint8_t> bytes) {
  return StringRef(reinterpret_cast<const char *>(bytes.data()), bytes.size()).rtrim('\0').str();
}

} // namespace

static Expected<Compiled<CompiledSource>>
compileSource(const std::string &source, const std::string &architecture, const char *option) {
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
  if (option)
    options.push_back(option);
  int status = compile(program, static_cast<int>(options.size()), options.data());
  std::vector<uint8_t> log = read(program, "nvrtcGetProgramLogSize", "nvrtcGetProgramLog");
  if (status != 0) {
    destroy(&program);
    return createStringError("NVRTC: " + std::string(log.begin(), log.end()));
  }
  Compiled<CompiledSource> result{{read(program, "nvrtcGetCUBINSize", "nvrtcGetCUBIN"),
                                   read(program, "nvrtcGetPTXSize", "nvrtcGetPTX")},
                                  textOf(log)};
  destroy(&program);
  return result;
}

Expected<CompiledSource> compileSource(const std::string &source, const std::string &architecture) {
  auto compiled = compileSource(source, architecture, /*option=*/nullptr);
  if (!compiled)
    return compiled.takeError();
  return std::move(compiled->code);
}

// Machine code has a note of the options it was made with, so that of a plan is made without these.
Expected<std::string> sourceLog(const std::string &source, const std::string &architecture) {
  auto compiled = compileSource(source, architecture, "--ptxas-options=-v");
  if (!compiled)
    return compiled.takeError();
  return std::move(compiled->log);
}

/// Nothing where the library is missing.
static Expected<std::optional<Compiled<std::vector<uint8_t>>>>
assemble(const std::string &ptx, const std::string &architecture, const char *option) {
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
  auto *infoSize = newest<int(Handle, size_t *)>(linker, "nvJitLinkGetInfoLogSize", versions);
  auto *info = newest<int(Handle, char *)>(linker, "nvJitLinkGetInfoLog", versions);
  auto *destroy = newest<int(Handle *)>(linker, "nvJitLinkDestroy", versions);
  if (!create || !add || !complete || !size || !get || !destroy)
    return std::nullopt;
  constexpr int kPtx = 2; // NVJITLINK_INPUT_PTX
  std::string target = "-arch=" + architecture;
  SmallVector<const char *, 3> options = {target.c_str(), kAssembleOption};
  if (option)
    options.push_back(option);
  const auto read = [](Handle handle, auto *size, auto *get) {
    size_t bytes = 0;
    std::string text;
    if (size && get && size(handle, &bytes) == 0 && bytes > 0) {
      text.resize(bytes);
      get(handle, text.data());
    }
    return text;
  };
  Handle handle = nullptr;
  if (create(&handle, options.size(), options.data()) != 0)
    return createStringError("nvJitLink refuses " + architecture);
  if (add(handle, kPtx, ptx.c_str(), ptx.size() + 1, "hydra.ptx") != 0 || complete(handle) != 0) {
    const std::string text = read(handle, logSize, log);
    destroy(&handle);
    return createStringError("nvJitLink: " + text);
  }
  size_t bytes = 0;
  size(handle, &bytes);
  Compiled<std::vector<uint8_t>> result{std::vector<uint8_t>(bytes),
                                        StringRef(read(handle, infoSize, info)).rtrim('\0').str()};
  get(handle, result.code.data());
  destroy(&handle);
  return result;
}

Expected<std::optional<std::vector<uint8_t>>> assemble(const std::string &ptx,
                                                       const std::string &architecture) {
  auto assembled = assemble(ptx, architecture, /*option=*/nullptr);
  if (!assembled)
    return assembled.takeError();
  if (!*assembled)
    return std::nullopt;
  return std::move((*assembled)->code);
}

Expected<std::string> assemblerLog(const std::string &ptx, const std::string &architecture) {
  auto assembled = assemble(ptx, architecture, "-Xptxas=-v");
  if (!assembled)
    return assembled.takeError();
  if (!*assembled)
    return missing("nvJitLink (libnvJitLink.so)", "says what generated kernels take");
  return std::move((*assembled)->log);
}

} // namespace hydra::cuda
