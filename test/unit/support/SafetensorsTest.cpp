// The safetensors reader against every kind of damage, and the writer's bytes.
#include "runtime/support/Safetensors.h"
#include "runtime/support/Error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <iterator>

#include <sys/stat.h>
#include <unistd.h>

using namespace hydra::support;

namespace fs = std::filesystem;

namespace {

std::vector<std::byte> toBytes(const std::string &text) {
  std::vector<std::byte> bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

/// A file image: length, header, `dataSize` bytes 0, 1, 2, ...
std::vector<std::byte> image(const std::string &header, size_t dataSize) {
  const uint64_t length = header.size();
  std::string text(reinterpret_cast<const char *>(&length), sizeof(length));
  text += header;
  for (size_t i = 0; i < dataSize; ++i)
    text.push_back(static_cast<char>(i));
  return toBytes(text);
}

std::string parseError(const std::vector<std::byte> &bytes) {
  try {
    Safetensors::parse(bytes, "f.st");
  } catch (const Error &error) {
    return error.what();
  }
  return "accepted";
}

std::string parseError(const std::string &header, size_t dataSize) {
  return parseError(image(header, dataSize));
}

template <typename Action> std::string errorOf(Action action) {
  try {
    action();
  } catch (const Error &error) {
    return error.what();
  }
  return "no error";
}

std::string contentsOf(const fs::path &path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

template <typename T, size_t N> std::span<const std::byte> bytesOf(const std::array<T, N> &values) {
  return std::as_bytes(std::span(values));
}

/// A fresh directory for each test.
class SafetensorsFiles : public testing::Test {
protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "hydra-safetensors-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory = pattern;
  }
  void TearDown() override { fs::remove_all(directory); }

  size_t filesInDirectory() const {
    return std::distance(fs::directory_iterator(directory), fs::directory_iterator());
  }

  fs::path directory;
};

constexpr std::array<float, 6> kWeights = {1.0f, -2.0f, 3.5f, 0.0f, 5.0f, 6.0f};
constexpr std::array<int32_t, 3> kTokens = {7, -100, 9};

std::vector<TensorView> exampleTensors() {
  return {{{"layers.0.wq", DType::F32, {2, 3}}, bytesOf(kWeights)},
          {{"empty", DType::BF16, {0, 4}}, {}},
          {{"tokens", DType::I32, {3}}, bytesOf(kTokens)},
          {{"scalar", DType::F32, {}}, bytesOf(kWeights).first(4)}};
}

} // namespace

TEST(Safetensors, ReadsTensorsAndMetadata) {
  const auto bytes = image(R"({"__metadata__":{"step":"3"},)"
                           R"("b":{"dtype":"U8","shape":[2],"data_offsets":[8,10]},)"
                           R"("a":{"shape":[1,2],"data_offsets":[0,8],"dtype":"F32"}}   )",
                           10);
  const Safetensors file = Safetensors::parse(bytes, "f.st");
  ASSERT_EQ(file.tensors().size(), 2u);
  EXPECT_EQ(file.tensors()[0].name, "b"); // the order of the header
  EXPECT_EQ(file.tensors()[1].name, "a");
  EXPECT_EQ(file.get("a").dtype, DType::F32);
  EXPECT_EQ(file.get("a").shape, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(file.get("b").bytes.size(), 2u);
  EXPECT_EQ(file.get("b").bytes[0], std::byte{8});
  EXPECT_EQ(file.metadata().at("step"), "3");
  EXPECT_EQ(file.find("c"), nullptr);
  EXPECT_EQ(errorOf([&] { file.get("c"); }), "f.st: has no tensor 'c' among its 2");
}

TEST(Safetensors, AcceptsNoTensorsScalarsAndEmptyTensors) {
  EXPECT_EQ(parseError("{}", 0), "accepted");
  EXPECT_EQ(parseError(R"({"s":{"dtype":"F64","shape":[],"data_offsets":[0,8]},)"
                       R"("e":{"dtype":"F64","shape":[4294967296,0],)"
                       R"("data_offsets":[8,8]}})",
                       8),
            "accepted");
}

TEST(Safetensors, LiesInTheHeader) {
  const std::string inside = "f.st: tensor 'a': ";
  const std::pair<std::string, std::string> lies[] = {
      // offsets
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,12]}})",
       inside + "data_offsets [0, 12] end beyond the data; expected at most 8 (truncated file?)"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})",
       inside + "data_offsets [8, 0] run backwards; expected begin <= end"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[-8,0]}})",
       inside + "data_offsets[0] is -8; expected an integer from 0 to 2^63-1"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8.0]}})",
       inside + "data_offsets[1] is 8.0; expected an integer from 0 to 2^63-1"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,18446744073709551615]}})",
       inside + "data_offsets[1] is 18446744073709551615; expected an integer from 0 to 2^63-1"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0]}})",
       inside + "data_offsets has 1 numbers; expected [begin, end]"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8,8]}})",
       inside + "data_offsets has 3 numbers; expected [begin, end]"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":8}})",
       inside + "data_offsets is 8; expected an array"},
      {R"({"a":{"dtype":"F32","shape":[2]}})",
       inside + "has no data_offsets; expected dtype, shape and data_offsets"},
      // shape and dtype
      {R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})",
       inside + "data_offsets [0, 8] hold 8 bytes; expected 12 for F32 [3]"},
      {R"({"a":{"dtype":"F64","shape":[2],"data_offsets":[0,8]}})",
       inside + "data_offsets [0, 8] hold 8 bytes; expected 16 for F64 [2]"},
      {R"({"a":{"dtype":"F32","shape":[-1,-2],"data_offsets":[0,8]}})",
       inside + "shape[0] is -1; expected an integer from 0 to 2^63-1"},
      {R"({"a":{"dtype":"F32","shape":[1e400],"data_offsets":[0,8]}})",
       "f.st: the header is not valid JSON: "},
      {R"({"a":{"dtype":"F32","shape":["2"],"data_offsets":[0,8]}})",
       inside + "shape[0] is of JSON type string; expected an integer from 0 to 2^63-1"},
      {R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]}})",
       inside + "the size of shape [4294967296, 4294967296] does not fit 64 bits"},
      {R"({"a":{"dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,0]}})",
       inside + "the size of shape [4611686018427387904] does not fit 64 bits"},
      {R"({"a":{"dtype":"F32","shape":[0,4611686018427387904],"data_offsets":[0,0]}})",
       inside + "the size of shape [0, 4611686018427387904] does not fit 64 bits"},
      {R"({"a":{"dtype":"F32","shape":2,"data_offsets":[0,8]}})",
       inside + "shape is 2; expected an array"},
      {R"({"a":{"dtype":"F32","data_offsets":[0,8]}})",
       inside + "has no shape; expected dtype, shape and data_offsets"},
      {R"({"a":{"dtype":"F33","shape":[2],"data_offsets":[0,8]}})",
       inside + "dtype is 'F33'; expected one of F64, F32, BF16, F16, I64, I32, I16, I8, U8, "
                "U16, U32, BOOL, F8_E4M3, F8_E5M2"},
      {R"({"a":{"dtype":32,"shape":[2],"data_offsets":[0,8]}})",
       inside + "dtype is 32; expected a string"},
      {R"({"a":{"shape":[2],"data_offsets":[0,8]}})",
       inside + "has no dtype; expected dtype, shape and data_offsets"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":0}})",
       inside + "unknown key 'x'; expected dtype, shape and data_offsets"},
      {R"({"a":[]})", inside + "the entry is of JSON type array; expected an object"},
      {R"({"a":null})", inside + "the entry is of JSON type null; expected an object"},
      // how tensors share the data
      {R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},)"
       R"("b":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})",
       "f.st: tensor 'b': data begins at 4, which overlaps another tensor; expected 8"},
      {R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},)"
       R"("b":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}})",
       "f.st: tensor 'b': data begins at 0, which overlaps another tensor; expected 8"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
       R"("b":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})",
       "f.st: tensor 'b': data begins at 4, which leaves a hole; expected 2"},
      {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})",
       inside + "data begins at 4, which leaves a hole; expected 0"},
      {R"({"a":{"dtype":"U8","shape":[7],"data_offsets":[0,7]}})",
       "f.st: 1 bytes follow the last tensor; expected none"},
      {"{}", "f.st: 8 bytes follow the last tensor; expected none"},
      // names and metadata
      {R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},)"
       R"("a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}})",
       "f.st: the header has the name 'a' twice; expected unique names"},
      {R"({"a":{"dtype":"U8","dtype":"U8","shape":[8],"data_offsets":[0,8]}})",
       "f.st: the header has the name 'dtype' twice; expected unique names"},
      {R"({"__metadata__":{"k":"1","k":"2"}})",
       "f.st: the header has the name 'k' twice; expected unique names"},
      {R"({"__metadata__":{"k":1}})",
       "f.st: __metadata__ 'k' is of JSON type number; expected a string"},
      {R"({"__metadata__":"k"})", "f.st: __metadata__ is of JSON type string; expected an object"},
      // no JSON object
      {"", "f.st: the header starts with ''; expected '{'"},
      {"[]", "f.st: the header starts with '['; expected '{'"},
      {" {}", "f.st: the header starts with ' '; expected '{'"},
      {"\xef\xbb\xbf{}", "f.st: the header starts with '?'; expected '{'"},
      {"{", "f.st: the header is not valid JSON: "},
      {"{} {}", "f.st: the header is not valid JSON: "},
      {"{\"\xff\":{}}", "f.st: the header is not valid JSON: "},
      {std::string("{}\0x", 4), "f.st: the header has a zero byte at 2; expected JSON text"},
      {std::string(100'000, '{'), "f.st: the header is not valid JSON: "},
      {"{\"a\":" + std::string(100'000, '['), "f.st: the header is not valid JSON: "},
      {"{\"a\nb\":{}}", "f.st: the header is not valid JSON: "},
      {R"({"a\nb":{}})", "f.st: tensor 'a?b': has no dtype"}, // the message stays one line
  };
  for (const auto &[header, expected] : lies) {
    const std::string message = parseError(header, 8);
    EXPECT_NE(message.find(expected), std::string::npos)
        << header.substr(0, 200) << "\n  found    " << message << "\n  expected " << expected;
    EXPECT_EQ(message.find('\n'), std::string::npos);
    EXPECT_LT(message.size(), 600u);
  }
}

TEST(Safetensors, HeaderLength) {
  auto withLength = [](uint64_t length, size_t size) {
    std::vector<std::byte> bytes(size, std::byte{' '});
    std::memcpy(bytes.data(), &length, sizeof(length));
    return bytes;
  };
  EXPECT_EQ(parseError(withLength(3, 10)),
            "f.st: the header length is 3 but 2 bytes follow it (truncated file?)");
  EXPECT_EQ(parseError(withLength(100'000'001, 10)),
            "f.st: the header length is 100000001; expected at most 100000000 (not a safetensors "
            "file?)");
  EXPECT_EQ(parseError(withLength(~uint64_t{0}, 10)),
            "f.st: the header length is 18446744073709551615; expected at most 100000000 (not a "
            "safetensors file?)");
  EXPECT_EQ(parseError(std::vector<std::byte>{}),
            "f.st: 0 bytes; expected at least the 8 of the header length");
}

TEST_F(SafetensorsFiles, RoundTrip) {
  const fs::path path = directory / "a.safetensors";
  const SafetensorsMetadata metadata = {{"step", "12"}, {"config", "{\"D\": 64,\n\"µ\": 1}"}};
  writeSafetensors(path, exampleTensors(), metadata);
  EXPECT_EQ(filesInDirectory(), 1u);
  const Safetensors file = Safetensors::open(path);
  EXPECT_EQ(file.metadata(), metadata);
  const std::vector<TensorView> expected = exampleTensors();
  ASSERT_EQ(file.tensors().size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const TensorView &read = file.tensors()[i];
    EXPECT_EQ(read.name, expected[i].name);
    EXPECT_EQ(read.dtype, expected[i].dtype);
    EXPECT_EQ(read.shape, expected[i].shape);
    EXPECT_TRUE(std::ranges::equal(read.bytes, expected[i].bytes));
  }
}

TEST_F(SafetensorsFiles, BytesAreDeterministicAndDataIsAligned) {
  const fs::path path = directory / "a.safetensors";
  for (size_t nameLength = 1; nameLength < 70; ++nameLength) {
    const TensorView tensor{{std::string(nameLength, 'n'), DType::F32, {2, 3}}, bytesOf(kWeights)};
    writeSafetensors(path, std::span(&tensor, 1));
    const std::string first = contentsOf(path);
    EXPECT_EQ((first.size() - 24) % 64, 0u);
    writeSafetensors(path, std::span(&tensor, 1));
    EXPECT_EQ(contentsOf(path), first);
  }
  writeSafetensors(path, {});
  EXPECT_EQ(contentsOf(path), std::string("\x38\0\0\0\0\0\0\0{}", 10) + std::string(54, ' '));
}

TEST_F(SafetensorsFiles, EveryTruncationIsRefused) {
  const fs::path path = directory / "a.safetensors";
  writeSafetensors(path, exampleTensors(), {{"step", "12"}});
  const std::string whole = contentsOf(path);
  for (size_t size = 0; size < whole.size(); ++size) {
    fs::resize_file(path, size);
    const std::string message = errorOf([&] { Safetensors::open(path); });
    ASSERT_EQ(message.rfind(path.string() + ": ", 0), 0u) << size << ": " << message;
    ASSERT_EQ(message.find('\n'), std::string::npos);
    std::ofstream(path, std::ios::binary) << whole;
  }
  EXPECT_EQ(errorOf([&] { Safetensors::open(path); }), "no error");
  std::ofstream(path, std::ios::app) << 'x';
  EXPECT_EQ(errorOf([&] { Safetensors::open(path); }),
            path.string() + ": 1 bytes follow the last tensor; expected none");
}

// A changed byte may make another valid file; it must never do more than throw an Error.
TEST_F(SafetensorsFiles, EveryBitFlipIsAcceptedOrRefusedInOneLine) {
  const fs::path path = directory / "a.safetensors";
  writeSafetensors(path, exampleTensors(), {{"step", "12"}});
  const std::vector<std::byte> whole = toBytes(contentsOf(path));
  size_t refused = 0;
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::vector<std::byte> damaged = whole;
    damaged[bit / 8] ^= std::byte{1} << (bit % 8);
    const std::string message = parseError(damaged);
    refused += message != "accepted";
    ASSERT_EQ(message.find('\n'), std::string::npos);
  }
  EXPECT_GT(refused, whole.size() * 4);
}

TEST_F(SafetensorsFiles, ReadsUnalignedData) {
  const std::vector<std::byte> whole = [&] {
    writeSafetensors(directory / "a", exampleTensors());
    return toBytes(contentsOf(directory / "a"));
  }();
  for (size_t shift = 0; shift < 8; ++shift) {
    std::vector<std::byte> buffer(shift);
    buffer.insert(buffer.end(), whole.begin(), whole.end());
    const Safetensors file = Safetensors::parse(std::span(buffer).subspan(shift), "f.st");
    std::vector<double> values(6);
    toDoubles(DType::F32, file.get("layers.0.wq").bytes, values);
    EXPECT_EQ(values, (std::vector<double>(kWeights.begin(), kWeights.end())));
  }
}

TEST_F(SafetensorsFiles, WhatCannotBeOpened) {
  auto message = [](const fs::path &path) { return errorOf([&] { Safetensors::open(path); }); };
  EXPECT_EQ(message(directory / "none"),
            "cannot read " + (directory / "none").string() + ": No such file or directory");
  const std::string end = "; expected a regular file";
  EXPECT_EQ(message(directory), "cannot read " + directory.string() + ": it is a directory" + end);
  EXPECT_EQ(message("/dev/null"), "cannot read /dev/null: it is a device" + end);
  const fs::path pipe = directory / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(message(pipe), "cannot read " + pipe.string() + ": it is a pipe" + end);
}

TEST_F(SafetensorsFiles, ReadsOneTensorAfterTheOtherAndNoticesWhenTheFileIsCut) {
  const fs::path path = directory / "a.safetensors";
  writeSafetensors(path, exampleTensors());
  const SafetensorsFile file(path);
  ASSERT_EQ(file.tensors().size(), exampleTensors().size());
  for (const TensorView &tensor : exampleTensors()) {
    const TensorPlace *place = file.find(tensor.name);
    ASSERT_NE(place, nullptr);
    EXPECT_EQ(place->shape, tensor.shape);
    EXPECT_TRUE(std::ranges::equal(file.read(*place), tensor.bytes)) << tensor.name;
  }
  const uint64_t size = fs::file_size(path);
  for (const uint64_t left : {size - 1, uint64_t{0}}) {
    fs::resize_file(path, left);
    EXPECT_EQ(
        errorOf([&] { file.read(*file.find("layers.0.wq")); }),
        fmt::format("{}: has become shorter than its {} bytes while in use", path.string(), size));
  }
}

TEST_F(SafetensorsFiles, StreamsPieces) {
  const fs::path path = directory / "a.safetensors";
  SafetensorsWriter writer(
      path, {{"e", DType::F32, {0}}, {"a", DType::F32, {6}}, {"b", DType::I32, {3}}});
  EXPECT_FALSE(fs::exists(path));
  writer.append("e", {});
  writer.append("a", bytesOf(kWeights).first(5));
  writer.append("a", bytesOf(kWeights).subspan(5));
  writer.append("b", bytesOf(kTokens));
  writer.commit();
  EXPECT_EQ(filesInDirectory(), 1u);
  const Safetensors file = Safetensors::open(path);
  EXPECT_TRUE(std::ranges::equal(file.get("a").bytes, bytesOf(kWeights)));
  EXPECT_TRUE(std::ranges::equal(file.get("b").bytes, bytesOf(kTokens)));
}

TEST_F(SafetensorsFiles, WriterRefusesWhatDoesNotFitTheDeclaration) {
  const fs::path path = directory / "a.safetensors";
  const std::string prefix = "cannot write " + path.string() + ": tensor ";
  auto write = [&](std::vector<TensorInfo> tensors, SafetensorsMetadata metadata = {}) {
    return errorOf([&] { SafetensorsWriter(path, tensors, metadata); });
  };
  EXPECT_EQ(write({{"a", DType::F32, {1}}, {"a", DType::F32, {1}}}),
            prefix + "'a': the name is taken; expected unique names");
  EXPECT_EQ(write({{"__metadata__", DType::F32, {1}}}),
            prefix + "'__metadata__': the name is taken; expected unique names");
  EXPECT_EQ(write({{"a", DType::F32, {2, -1}}}),
            prefix + "'a': shape [2, -1] is negative or its size does not fit 64 bits");
  EXPECT_EQ(write({{"a", DType::F32, {1LL << 62}}}),
            prefix + "'a': shape [4611686018427387904] is negative or its size does not fit 64 "
                     "bits");
  EXPECT_EQ(
      write({{"a", DType::U8, {INT64_MAX}}, {"b", DType::U8, {INT64_MAX}}, {"c", DType::U8, {2}}}),
      prefix + "'c': the file's size does not fit 64 bits");
  EXPECT_NE(write({{"\xff", DType::F32, {1}}}).find("is not UTF-8"), std::string::npos);
  EXPECT_NE(write({}, {{"k", "\xff"}}).find("is not UTF-8"), std::string::npos);
  EXPECT_NE(write({}, {{"k", std::string(100'000'000, 'x')}}).find("expected at most 100000000"),
            std::string::npos);

  const std::vector<TensorInfo> two = {{"a", DType::F32, {6}}, {"b", DType::I32, {3}}};
  auto append = [&](auto action) {
    SafetensorsWriter writer(path, two);
    return errorOf([&] { action(writer); });
  };
  EXPECT_EQ(append([](auto &writer) { writer.append("b", bytesOf(kTokens)); }),
            prefix + "'b' is out of order; expected 'a'");
  EXPECT_EQ(append([](auto &writer) {
              writer.append("a", bytesOf(kWeights).first(20));
              writer.append("a", bytesOf(kTokens));
            }),
            prefix + "'a': 12 bytes; expected at most 4");
  EXPECT_EQ(append([](auto &writer) { writer.commit(); }), prefix + "'a': 24 bytes are missing");
  EXPECT_EQ(append([](auto &writer) {
              writer.append("a", bytesOf(kWeights));
              writer.append("b", bytesOf(kTokens));
              writer.append("b", bytesOf(kTokens));
            }),
            prefix + "'b': all tensors have their bytes; expected none");
  EXPECT_EQ(filesInDirectory(), 0u);
}
