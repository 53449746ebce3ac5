// The program hydra-run: what it prints, what it leaves, and that every mistake is one line and
// status 1.
#include "runtime/support/Safetensors.h"
#include "test/unit/cpu/SharedVariables.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

using namespace hydra::test;
namespace runtime = hydra::runtime;
namespace support = hydra::support;

namespace {

struct Outcome {
  int status = -1;
  std::string output; // standard output, or both when asked for
};

Outcome shell(const std::string &command) {
  Outcome outcome;
  FILE *pipe = ::popen(command.c_str(), "r");
  std::array<char, 4096> part;
  for (size_t count; (count = std::fread(part.data(), 1, part.size(), pipe)) > 0;)
    outcome.output.append(part.data(), count);
  const int status = ::pclose(pipe);
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

class HydraRun : public testing::Test {
protected:
  void SetUp() override {
    folder = std::filesystem::temp_directory_path() / ("hydra-run-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder);
    runtime::writePlan(folder / "train.fb", smallTraining().plan);
    const std::array<float, 4> target{1, 2, 3, 4};
    const std::array<int32_t, 6> ids{0, 1, 2, 3, 4, 5};
    const std::vector<support::TensorView> tensors = {
        {{"target", support::DType::F32, {4}}, std::as_bytes(std::span(target))},
        {{"tokens", support::DType::I32, {2, 3}}, std::as_bytes(std::span(ids))},
        {{"labels", support::DType::I32, {2, 3}}, std::as_bytes(std::span(ids))}};
    support::writeSafetensors(folder / "in.safetensors", tensors);
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  /// hydra-run in the folder of the test; `redirect` tells where standard error goes.
  Outcome run(const std::string &arguments, const std::string &redirect = "2>/dev/null") const {
    return shell("cd " + folder.string() + " && " HYDRA_RUN " " + arguments + " " + redirect);
  }

  /// Expects status 1 and one line on standard error that holds `part`.
  void expectRefusal(const std::string &arguments, const std::string &part) const {
    const Outcome outcome = run(arguments, "2>&1 >/dev/null");
    EXPECT_EQ(outcome.status, 1) << arguments;
    EXPECT_EQ(std::count(outcome.output.begin(), outcome.output.end(), '\n'), 1)
        << arguments << ": " << outcome.output;
    EXPECT_NE(outcome.output.find(part), std::string::npos) << arguments << ": " << outcome.output;
    EXPECT_EQ(outcome.output.rfind("hydra-run: ", 0), 0u) << outcome.output;
  }

  std::filesystem::path folder;
};

} // namespace

TEST_F(HydraRun, RanksThatHoldPartsLeaveTheFilesOfOneAlone) {
  const auto train = [&](const Keeping &how, const std::string &more) {
    const std::string plan = how.name + ".fb";
    runtime::writePlan(folder / plan, sharedVariables(how).plan);
    const std::string ranks = how.ranks() > 1 ? fmt::format(" --ranks={}", how.ranks()) : "";
    return run(plan + ranks + " " + more, "2>&1");
  };
  const auto same = [&](const std::string &a, const std::string &b) {
    const Outcome outcome = shell("cd " + folder.string() + " && diff -r " + a + " " + b);
    EXPECT_EQ(outcome.status, 0) << outcome.output;
  };
  const Keeping alone = keepings().front();
  EXPECT_EQ(train(alone, "--steps 4 --save Alone --outputs Alone.out --export Alone.st").status, 0);
  for (const Keeping &how : keepings()) {
    if (how.name != "Fsdp" && how.name != "FsdpOnFour" && how.name != "Zero1" &&
        how.name != "Hybrid")
      continue;
    const std::string to = " --save " + how.name;
    EXPECT_EQ(train(how, "--steps 2" + to).status, 0) << how.name;
    EXPECT_EQ(train(alone, "--steps 3 --resume auto" + to).status, 0) << how.name;
    const Outcome last = train(how, "--steps 4 --resume auto" + to + " --outputs " + how.name +
                                        ".out --export " + how.name + ".st");
    EXPECT_EQ(last.status, 0) << last.output;
    EXPECT_NE(last.output.find("67,223 parameters"), std::string::npos) << last.output;
    same("Alone/step-00000004", how.name + "/step-00000004");
    same("Alone.st", how.name + ".st");
    // Losses are of the steps of each run.
    const auto whole = support::Safetensors::open(folder / "Alone.out");
    const auto ours = support::Safetensors::open(folder / (how.name + ".out"));
    for (const support::TensorView &tensor : whole.tensors())
      if (tensor.name != "losses")
        EXPECT_TRUE(std::ranges::equal(tensor.bytes, ours.get(tensor.name).bytes)) << tensor.name;
    const Outcome weights = train(how, "--steps 1 --weights Alone.st --export again.st");
    EXPECT_EQ(weights.status, 0) << weights.output;
  }
}

TEST_F(HydraRun, RanksSayTogetherWhichParametersAreNotFinite) {
  const Keeping how = keepings()[4];
  ASSERT_EQ(how.name, "Fsdp");
  runtime::writePlan(folder / "fsdp.fb", sharedVariables(how).plan);
  constexpr float inf = std::numeric_limits<float>::infinity();
  const std::array<float, 4> target{1, 2, inf, 4}, w{};
  const std::array<int32_t, 6> ids{0, 1, 2, 3, 4, 5};
  std::vector<float> large(size_t{130} * 517);
  large.back() = inf; // which rank 1 holds
  const std::array<float, 6> order{};
  const std::array<float, 3> tiny{};
  const auto bytes = [](const auto &values) { return std::as_bytes(std::span(values)); };
  const std::vector<support::TensorView> tensors = {
      {{"target", support::DType::F32, {4}}, bytes(target)},
      {{"tokens", support::DType::I32, {2, 3}}, bytes(ids)},
      {{"labels", support::DType::I32, {2, 3}}, bytes(ids)},
      {{"w", support::DType::F32, {4}}, bytes(w)},
      {{"large", support::DType::F32, {130, 517}}, bytes(large)},
      {{"order", support::DType::F32, {6}}, bytes(order)},
      {{"tiny", support::DType::F32, {3}}, bytes(tiny)}};
  support::writeSafetensors(folder / "inf.safetensors", tensors);
  expectRefusal("fsdp.fb --ranks=2 --inputs inf.safetensors --steps 1",
                "step 1: the loss is inf; learning rate 0.5; 2 of 4 parameters are not finite now, "
                "the first is w");
}

TEST_F(HydraRun, AFullDiskUnderOneRankCostsTheCheckpointOfAll) {
  runtime::writePlan(folder / "fsdp.fb", sharedVariables(keepings()[4]).plan);
  // Rank 1 may write half of a file, which is not where its part is.
  const std::string world =
      fmt::format("WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT={} ", freePort());
  const std::string command = " exec " HYDRA_RUN " fsdp.fb --steps 2 --save run --save-every 1";
  const auto outcome =
      shell("cd " + folder.string() + " && (" + world + "RANK=1 bash -c 'ulimit -f 120;" + command +
            "' > one.txt 2>&1; echo $? >> one.txt) & cd " + folder.string() + " && " + world +
            "RANK=0 bash -c '" + command + "' 2>&1 > /dev/null; echo $?; wait");
  EXPECT_EQ(std::count(outcome.output.begin(), outcome.output.end(), '\n'), 4) << outcome.output;
  const std::string_view text = outcome.output;
  EXPECT_TRUE(text.ends_with("1\n")) << text;
  const size_t first = text.find("hydra-run: rank 1 (host "),
               goesOn = text.find("; training goes on\n"),
               last = text.rfind("hydra-run: rank 1 (host ");
  EXPECT_TRUE(first < goesOn && goesOn < last && last != text.npos) << text;
  EXPECT_NE(text.find("cannot write "), text.npos) << text;
  EXPECT_NE(text.find("File too large"), text.npos) << text;
  EXPECT_TRUE(std::filesystem::is_empty(folder / "run"));
  EXPECT_EQ(shell("cat " + (folder / "one.txt").string() + " | tail -1").output, "1\n");
}

TEST_F(HydraRun, RanksThatSaveTogetherCanBeKilledAtAnyMoment) {
  const Keeping alone = keepings().front(), how = keepings()[4];
  runtime::writePlan(folder / "alone.fb", sharedVariables(alone).plan);
  runtime::writePlan(folder / "fsdp.fb", sharedVariables(how).plan);
  const auto newest = [&] {
    int64_t step = 0;
    if (std::filesystem::exists(folder / "run"))
      for (const auto &entry : std::filesystem::directory_iterator(folder / "run"))
        if (const std::string name = entry.path().filename(); name.starts_with("step-"))
          step = std::max<int64_t>(step, std::stoll(name.substr(5)));
    return step;
  };
  const std::string command = "fsdp.fb --ranks=2 --save run --save-every 1 --resume auto --steps ";
  for (int attempt = 0; attempt < 10; ++attempt) {
    const int64_t before = newest();
    // The launcher's number, then what its ranks say.
    FILE *pipe = ::popen(("cd " + folder.string() + " && bash -c 'echo $$; exec " HYDRA_RUN " " +
                          command + "1000000000 2>&1 > /dev/null'")
                             .c_str(),
                         "r");
    int launcher = 0;
    ASSERT_EQ(std::fscanf(pipe, "%d\n", &launcher), 1);
    for (int wait = 0; newest() <= before && wait < 30'000; ++wait)
      ::usleep(1000);
    ::usleep(static_cast<unsigned>(attempt) * 3000);
    std::ifstream children(fmt::format("/proc/{0}/task/{0}/children", launcher));
    std::array<int, 2> pids{};
    children >> pids[0] >> pids[1];
    ASSERT_GT(pids[1], 0) << "step " << newest() << ", before " << before;
    ::kill(pids[static_cast<size_t>(attempt % 2)], SIGKILL);
    std::string said;
    std::array<char, 4096> part;
    while (std::fgets(part.data(), part.size(), pipe))
      if (!std::string_view(part.data()).ends_with(" of seed 0\n"))
        said += part.data();
    EXPECT_NE(::pclose(pipe), 0);
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
    EXPECT_NE(said.find(fmt::format("pid {}) died", pids[static_cast<size_t>(attempt % 2)])),
              std::string::npos)
        << said;
  }
  const int64_t last = newest() + 1;
  EXPECT_EQ(run(command + std::to_string(last)).status, 0);
  EXPECT_EQ(run(fmt::format("alone.fb --save alone --steps {}", last)).status, 0);
  const Outcome same = shell(
      fmt::format("cd {} && diff -r alone/step-{:08} run/step-{:08}", folder.string(), last, last));
  EXPECT_EQ(same.status, 0) << same.output;
}

TEST_F(HydraRun, RanksThatSaveTogetherNeedAFolderThatAllSee) {
  if (shell("unshare -rm true 2> /dev/null").status != 0)
    GTEST_SKIP() << "there is no way to hide a folder here";
  runtime::writePlan(folder / "fsdp.fb", sharedVariables(keepings()[4]).plan);
  std::filesystem::create_directory(folder / "run");
  const std::string world =
      fmt::format("WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT={} ", freePort());
  const std::string command = " exec " HYDRA_RUN " fsdp.fb --steps 2 --save run";
  const Outcome outcome = shell("cd " + folder.string() + " && (" + world +
                                "RANK=1 unshare -rm bash -c 'mount -t tmpfs none run;" + command +
                                "' > one.txt 2>&1) & cd " + folder.string() + " && " + world +
                                "RANK=0 bash -c '" + command + "' 2>&1 > /dev/null; echo $?; wait");
  EXPECT_TRUE(outcome.output.ends_with("1\n")) << outcome.output;
  for (const char *part : {"hydra-run: rank 1 (host ", "): cannot save into run: ",
                           ", which rank 0 has created, is not there; ranks that hold parts of "
                           "variables need a folder that all of them see\n"})
    EXPECT_NE(outcome.output.find(part), std::string::npos) << outcome.output;
  EXPECT_EQ(std::count(outcome.output.begin(), outcome.output.end(), '\n'), 2) << outcome.output;
}

TEST_F(HydraRun, TrainsOnGivenValuesTheSameEveryTime) {
  const std::string command = "train.fb --inputs in.safetensors --steps 3 --outputs ";
  const Outcome first = run(command + "a.safetensors --threads 1");
  EXPECT_EQ(first.status, 0);
  EXPECT_NE(first.output.find("step 1  loss 0.750000"), std::string::npos) << first.output;
  const size_t last = first.output.find("after 3 steps: loss");
  ASSERT_NE(last, std::string::npos) << first.output;
  EXPECT_NE(first.output.find(" by program eval\n", last), std::string::npos) << first.output;
  EXPECT_EQ(run(command + "b.safetensors --threads 2").status, 0);
  EXPECT_EQ(shell("cmp " + (folder / "a.safetensors").string() + " " +
                  (folder / "b.safetensors").string())
                .status,
            0);
  const auto out = support::Safetensors::open(folder / "a.safetensors");
  EXPECT_EQ(out.get("losses").shape, std::vector<int64_t>{4});
  EXPECT_NE(out.find("w.m"), nullptr);
}

TEST_F(HydraRun, SaysWhenDataIsSynthetic) {
  const Outcome outcome = run("train.fb --steps 1 --seed 5", "2>&1 >/dev/null");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_NE(outcome.output.find("random tokens and initial parameters of seed 5"),
            std::string::npos)
      << outcome.output;
}

TEST_F(HydraRun, BenchProfileAndDryRun) {
  const Outcome bench = run("train.fb --bench=4 --profile=table");
  EXPECT_EQ(bench.status, 0);
  EXPECT_NE(bench.output.find("4 steps of train.fb"), std::string::npos) << bench.output;
  EXPECT_NE(bench.output.find("longest steps"), std::string::npos) << bench.output;
  const Outcome dry = run("train.fb --dry-run");
  EXPECT_EQ(dry.status, 0);
  EXPECT_NE(dry.output.find("attention kernels"), std::string::npos) << dry.output;
}

TEST_F(HydraRun, ADryRunDoesNotLoadTheCodeOfThePlan) {
  const std::filesystem::path trace = folder / "trace";
  ::setenv("HYDRA_TEST_TRACE", trace.c_str(), 1);
  EXPECT_EQ(run("train.fb --dry-run").status, 0);
  EXPECT_EQ(run("train.fb --dry-run --steps 2 --inputs in.safetensors").status, 0);
  EXPECT_FALSE(std::filesystem::exists(trace));
  EXPECT_EQ(run("train.fb --steps 1").status, 0);
  EXPECT_TRUE(std::filesystem::exists(trace));
  ::unsetenv("HYDRA_TEST_TRACE");
}

TEST_F(HydraRun, WrongUseIsOneLine) {
  expectRefusal("", "plan is required");
  expectRefusal("train.fb", "--steps N");
  expectRefusal("train.fb --steps 0", "--steps");
  expectRefusal("train.fb --steps 2 --bench", "--bench");
  expectRefusal("train.fb --stpes 2", "unknown flag '--stpes'; did you mean '--steps'?");
  expectRefusal("train.fb --stpes=2", "did you mean '--steps'?");
  expectRefusal("train.fb --frobnicate", "--help lists the known ones");
  expectRefusal("train.fb --steps 2 --threads 0", "--threads");
  expectRefusal("train.fb --steps 2 --device tpu", "--device");
  expectRefusal("train.fb --bench --profile=picture", "--profile");
  expectRefusal("train.fb --steps 2 --clip 1", "the plan has no scalar 'clip'");
  expectRefusal("absent.fb --steps 2", "absent.fb");
  expectRefusal("train.fb --steps 2 --inputs absent.safetensors", "absent.safetensors");
  expectRefusal("train.fb --steps 2 --outputs absent/out.safetensors", "absent/out.safetensors");
}

TEST_F(HydraRun, DamagedFilesAndAFullDiskLeaveNothing) {
  std::filesystem::resize_file(folder / "train.fb",
                               std::filesystem::file_size(folder / "train.fb") - 1);
  expectRefusal("train.fb --steps 1", "train.fb: ");
  runtime::writePlan(folder / "train.fb", smallTraining().plan);
  std::filesystem::resize_file(folder / "in.safetensors", 20);
  expectRefusal("train.fb --steps 1 --inputs in.safetensors --outputs out.safetensors",
                "in.safetensors");
  EXPECT_FALSE(std::filesystem::exists(folder / "out.safetensors"));
  // A limit on file sizes stands for the full disk: the write fails after 256 KiB.
  PlanBuilder large = smallTraining();
  large.variable("large", {300000});
  runtime::writePlan(folder / "large.fb", large.plan);
  const Outcome full = shell("cd " + folder.string() +
                             " && ulimit -f 512 && trap '' XFSZ && " HYDRA_RUN
                             " large.fb --steps 1 --outputs out.safetensors 2>&1 >/dev/null");
  EXPECT_EQ(full.status, 1);
  EXPECT_NE(full.output.find("out.safetensors: "), std::string::npos) << full.output;
  for (const auto &entry : std::filesystem::directory_iterator(folder))
    EXPECT_NE(entry.path().filename().string().substr(0, 3), "out") << entry.path();
}

TEST_F(HydraRun, LinksNoCompiler) {
  const Outcome libraries = shell("ldd " HYDRA_RUN);
  EXPECT_EQ(libraries.status, 0);
  EXPECT_EQ(libraries.output.find("LLVM"), std::string::npos) << libraries.output;
  EXPECT_EQ(libraries.output.find("MLIR"), std::string::npos) << libraries.output;
}
