// Plan files: round trips, every kind of damage, and writing.
#include "runtime/support/Error.h"
#include "test/support/SamplePlan.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstring>
#include <fstream>
#include <iterator>

#include <sys/resource.h>
#include <unistd.h>

using namespace hydra;
using namespace hydra::runtime;
using namespace hydra::test;

namespace fs = std::filesystem;

namespace {

using Bytes = std::vector<std::byte>;

Bytes sampleBytes() { return encodePlan(samplePlan().plan); }

/// What the loader says; nothing if it accepts the bytes.
std::string errorOf(Bytes bytes) {
  try {
    PlanFile::parse(std::move(bytes), "plan.fb");
  } catch (const support::Error &error) {
    return error.what();
  }
  return "";
}

bool contains(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

void store32(Bytes &bytes, size_t offset, uint32_t value) {
  std::memcpy(bytes.data() + offset, &value, sizeof(value));
}

class PlanFiles : public testing::Test {
protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "hydra-plan-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory = pattern;
  }
  void TearDown() override { fs::remove_all(directory); }

  static std::string readError(const fs::path &path) {
    try {
      PlanFile::read(path);
    } catch (const support::Error &error) {
      return error.what();
    }
    return "";
  }

  size_t filesInDirectory() const {
    return std::distance(fs::directory_iterator(directory), fs::directory_iterator());
  }

  fs::path directory;
};

} // namespace

TEST_F(PlanFiles, WritesWhatItReads) {
  const fs::path path = directory / "plan.fb";
  writePlan(path, samplePlan().plan);
  const PlanFile file = PlanFile::read(path);
  EXPECT_EQ(file.origin(), path.string());
  EXPECT_EQ(fs::file_size(path), file.bytes().size());
  EXPECT_EQ(filesInDirectory(), 1u);

  const planfile::Plan &plan = file.plan();
  EXPECT_EQ(plan.header()->model()->str(), "test");
  EXPECT_EQ(plan.variables()->Get(0)->name()->str(), "layers.0.w");
  EXPECT_EQ(dtypeOf(*plan.tensors()->Get(plan.programs()->Get(0)->inputs()->Get(0)->tensor())),
            support::DType::I32);
  const auto &blocks = *plan.programs()->Get(0)->blocks();
  const auto *loop = blocks.Get(kLoop)->node_as_Loop();
  EXPECT_EQ(loop->count(), 5u);
  const auto *choice = loop->blocks()->Get(1)->node_as_Loop()->blocks()->Get(0)->node_as_Switch();
  EXPECT_EQ(choice->cases()->size(), 2u);
  EXPECT_EQ(blocks.Get(kMatmul)->node_as_Step()->cost()->flops(), 1536u);

  // What is unpacked and encoded again is the same file: `--tune` changes nothing else.
  const std::unique_ptr<planfile::PlanT> copy(plan.UnPack());
  const Bytes again = encodePlan(*copy);
  EXPECT_TRUE(std::equal(again.begin(), again.end(), file.bytes().begin(), file.bytes().end()));
}

TEST(PlanBytes, AreTheSameEveryTime) { EXPECT_EQ(sampleBytes(), sampleBytes()); }

TEST(PlanBytes, AreAFlatBuffersFile) {
  const Bytes bytes = sampleBytes();
  flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size());
  EXPECT_TRUE(planfile::VerifyPlanBuffer(verifier));
}

TEST(PlanBytes, BlobsKeepTheirAlignment) {
  PlanBuilder builder = samplePlan();
  for (size_t size = 1; size < 40; ++size) {
    builder.plan.blobs[0]->data.assign(size, 1);
    const PlanFile file = builder.load();
    const auto *data = file.plan().blobs()->Get(1)->data()->data();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 16, 0u) << size;
  }
}

TEST(PlanDamage, TruncationAtEveryByteIsRejected) {
  const Bytes bytes = sampleBytes();
  for (size_t size = 0; size < bytes.size(); ++size) {
    const std::string error = errorOf(Bytes(bytes.begin(), bytes.begin() + size));
    ASSERT_TRUE(contains(error, size < 40 ? "too few for a plan" : "truncated or damaged"))
        << size << ": " << error;
  }
}

TEST(PlanDamage, TruncationWithRepairedPrologueNeverCrashes) {
  const Bytes bytes = sampleBytes();
  for (size_t size = 40; size < bytes.size(); ++size) {
    Bytes damaged(bytes.begin(), bytes.begin() + size);
    sealPlan(damaged);
    errorOf(std::move(damaged));
  }
}

TEST(PlanDamage, TrailingBytesAreRejected) {
  Bytes bytes = sampleBytes();
  bytes.push_back(std::byte{0});
  EXPECT_TRUE(contains(errorOf(bytes), "truncated or damaged"));
}

TEST(PlanDamage, EverySingleBitFlipIsRejected) {
  Bytes bytes = sampleBytes();
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] ^= std::byte{1} << bit % 8;
    ASSERT_NE(errorOf(bytes), "") << "bit " << bit;
    bytes[bit / 8] ^= std::byte{1} << bit % 8;
  }
}

TEST(PlanDamage, BitFlipsUnderARepairedChecksumNeverCrash) {
  Bytes bytes = sampleBytes();
  size_t rejected = 0;
  for (size_t bit = size_t{8} * 40; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] ^= std::byte{1} << bit % 8;
    sealPlan(bytes);
    const std::string error = errorOf(bytes);
    rejected += !error.empty();
    ASSERT_FALSE(contains(error, "\n"));
    bytes[bit / 8] ^= std::byte{1} << bit % 8;
  }
  // Names, numbers in the header and predictions may change unseen; much of the rest may not.
  EXPECT_GT(rejected, 8 * bytes.size() / 4);
}

TEST(PlanDamage, EveryByteAtItsExtremesUnderARepairedChecksumNeverCrashes) {
  Bytes bytes = sampleBytes();
  for (size_t i = 40; i < bytes.size(); ++i) {
    for (const std::byte value :
         {std::byte{0}, std::byte{0x7f}, std::byte{0x80}, std::byte{0xff}}) {
      const std::byte old = bytes[i];
      bytes[i] = value;
      sealPlan(bytes);
      errorOf(bytes);
      bytes[i] = old;
    }
  }
}

TEST(PlanDamage, OtherFilesAreNoPlans) {
  Bytes bytes = sampleBytes();
  store32(bytes, 4, 0x464c457f);
  sealPlan(bytes);
  EXPECT_EQ(errorOf(bytes), "plan.fb: no plan: expected the identifier HYPL at byte 4");
}

TEST(PlanDamage, OtherVersionsAreNamed) {
  for (const uint32_t version : {kPlanVersion - 1, kPlanVersion + 1, ~uint32_t{0}}) {
    Bytes bytes = sampleBytes();
    store32(bytes, 8, version);
    EXPECT_EQ(errorOf(bytes),
              fmt::format("plan.fb: plan format version {}; this program reads version {} (compile "
                          "the model again with the hydrac that belongs to it)",
                          version, kPlanVersion));
  }
}

TEST(PlanDamage, ChecksumIsCheckedBeforeTheTables) {
  Bytes bytes = sampleBytes();
  store32(bytes, 0, ~uint32_t{0});
  EXPECT_TRUE(contains(errorOf(bytes), "the file is damaged"));
  sealPlan(bytes);
  EXPECT_TRUE(contains(errorOf(bytes), "FlatBuffers verifier"));
}

TEST_F(PlanFiles, UnreadableFilesAreNamed) {
  const std::string missing = (directory / "none.fb").string();
  EXPECT_EQ(readError(missing), "cannot read " + missing + ": No such file or directory");
  EXPECT_EQ(readError(directory),
            "cannot read " + directory.string() + ": it is a directory; expected a regular file");
  const fs::path empty = directory / "empty.fb";
  std::ofstream(empty).close();
  EXPECT_EQ(readError(empty),
            empty.string() + ": 0 bytes are too few for a plan; it begins with 40");
  const fs::path huge = directory / "huge.fb";
  std::ofstream(huge).close();
  fs::resize_file(huge, uint64_t{1} << 32);
  EXPECT_EQ(readError(huge), huge.string() + ": 4294967296 bytes are too many for a plan; the "
                                             "largest has 2147483646");
}

TEST_F(PlanFiles, BrokenPlansAreNotWritten) {
  const fs::path path = directory / "plan.fb";
  writePlan(path, samplePlan().plan);
  PlanBuilder builder = samplePlan();
  builder.plan.tensors[0]->dtype = planfile::DType(99);
  EXPECT_THROW(writePlan(path, builder.plan), support::Error);
  EXPECT_EQ(readError(path), "");
  EXPECT_EQ(filesInDirectory(), 1u);
}

TEST_F(PlanFiles, NothingIsLeftWhenTheDiskIsFull) {
  const fs::path path = directory / "plan.fb";
  rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto oldHandler = ::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{1000, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  EXPECT_THROW(writePlan(path, samplePlan().plan), support::Error);
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, oldHandler);
  EXPECT_EQ(filesInDirectory(), 0u);
}
