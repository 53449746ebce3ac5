// Fields: types, ranges, and those that nobody has read.
#include "frontend/Config.h"
#include "test/unit/frontend/FrontendFiles.h"

using namespace hydra::frontend;

namespace {

Config of(const std::string &text) { return {nlohmann::ordered_json::parse(text), "config.json"}; }

template <typename Read> std::string problem(const std::string &text, Read read) {
  try {
    Config config = of(text);
    read(config);
  } catch (const std::exception &error) {
    return error.what();
  }
  return "";
}

TEST(Config, ReadsWhatIsThere) {
  Config config = of(
      R"({"n": 3, "x": 2.5, "b": true, "s": "t", "l": ["u"], "p": [1, 2.5], "o": {"m": 1}, "z": null})");
  EXPECT_EQ(config.integer("n"), 3);
  EXPECT_EQ(config.positive("x"), 2.5);
  EXPECT_TRUE(config.flag("b", false));
  EXPECT_EQ(config.text("s"), "t");
  EXPECT_EQ(config.findTexts("l"), std::vector<std::string>{"u"});
  EXPECT_EQ(config.findPositives("p"), (std::vector<double>{1, 2.5}));
  EXPECT_EQ(config.findObject("o")->integer("m"), 1);
  EXPECT_EQ(config.integer("z", 1, 7), 7);
  EXPECT_FALSE(config.has("z"));
  config.finish("a test");
}

TEST(Config, NamesTheFieldThatNobodyReads) {
  EXPECT_EQ(problem(R"({"n": 3, "new_trick": 1})",
                    [](Config &c) {
                      c.integer("n");
                      c.finish("model_type 'x'");
                    }),
            "config.json: the field 'new_trick' of model_type 'x' is not supported; it may change "
            "what the model "
            "computes");
  EXPECT_EQ(problem(R"({"new_trick": null})", [](Config &c) { c.finish("x"); }), "");
}

TEST(Config, SaysWhatIsWrongWithAField) {
  const std::pair<const char *, const char *> integers[] = {
      {R"({})", "config.json: has no n; expected an integer from 1"},
      {R"({"n": 0})", "config.json: n is 0; expected an integer from 1 to 2^31-1"},
      {R"({"n": -1})", "config.json: n is -1; expected an integer from 1 to 2^31-1"},
      {R"({"n": 2.0})", "config.json: n is 2.0; expected an integer from 1 to 2^31-1"},
      {R"({"n": 99999999999})",
       "config.json: n is 99999999999; expected an integer from 1 to 2^31-1"},
      {R"({"n": 18446744073709551615})",
       "config.json: n is 18446744073709551615; expected an integer from 1 to 2^31-1"},
      {R"({"n": "3"})", "config.json: n is \"3\"; expected an integer from 1 to 2^31-1"},
  };
  for (const auto &[text, expected] : integers)
    EXPECT_EQ(problem(text, [](Config &c) { c.integer("n"); }), expected);
  EXPECT_EQ(problem(R"({"x": 0})", [](Config &c) { c.positive("x"); }),
            "config.json: x is 0; expected a number above 0");
  EXPECT_EQ(problem(R"({"b": 1})", [](Config &c) { c.flag("b", true); }),
            "config.json: b is 1; expected true or false");
  EXPECT_EQ(problem(R"({"b": true})", [](Config &c) { c.wantFlag("b", false); }),
            "config.json: b is true; expected false; anything else is not supported");
  EXPECT_EQ(problem(R"({"s": 1})", [](Config &c) { c.text("s"); }),
            "config.json: s is 1; expected a string");
  EXPECT_EQ(problem(R"({"l": [1]})", [](Config &c) { c.findTexts("l"); }),
            "config.json: l is [1]; expected a list of strings");
  EXPECT_EQ(problem(R"({"l": [1, -1]})", [](Config &c) { c.findPositives("l"); }),
            "config.json: l is [1,-1]; expected a list of numbers above 0");
  EXPECT_EQ(problem(R"({"o": []})", [](Config &c) { c.findObject("o"); }),
            "config.json: o is []; expected an object");
  EXPECT_EQ(problem(R"({"o": {"n": 0}})", [](Config &c) { c.findObject("o")->integer("n"); }),
            "config.json: o: n is 0; expected an integer from 1 to 2^31-1");
}

TEST(Config, ReadsFilesOfOneObject) {
  const Folder folder;
  folder.write("a.json", R"({"n": 1})");
  EXPECT_EQ(Config::open(folder / "a.json").integer("n"), 1);
  folder.write("b.json", "[1]");
  EXPECT_EQ(problemOf(folder, [&] { Config::open(folder / "b.json"); }),
            "DIR/b.json: holds array; expected an object");
  folder.write("c.json", "{\"n\": ");
  EXPECT_TRUE(problemOf(folder, [&] {
                Config::open(folder / "c.json");
              }).starts_with("DIR/c.json: is not valid JSON: "));
  folder.write("d.json", "{\"n\": \"\xff\"}");
  EXPECT_TRUE(problemOf(folder, [&] {
                Config::open(folder / "d.json");
              }).starts_with("DIR/d.json: is not valid JSON: "));
  EXPECT_EQ(problemOf(folder, [&] { Config::open(folder / "none.json"); }),
            "cannot read DIR/none.json: No such file or directory");
  folder.write("deep.json", std::string(1 << 20, '['));
  EXPECT_EQ(problemOf(folder, [&] { Config::open(folder / "deep.json"); }),
            "DIR/deep.json: brackets nest more than 64 deep");
  folder.write("twice.json", R"({"o": {"n": 1, "m": 2, "n": 3}})");
  EXPECT_EQ(problemOf(folder, [&] { Config::open(folder / "twice.json"); }),
            "DIR/twice.json: has the field 'n' twice");
  folder.write("nul.json", std::string("{\"n\": 1}\0x", 10));
  EXPECT_EQ(problemOf(folder, [&] { Config::open(folder / "nul.json"); }),
            "DIR/nul.json: has a zero byte at 8; expected JSON text");
  folder.write("big.json", std::string((16 << 20) + 1, ' '));
  EXPECT_EQ(problemOf(folder, [&] { Config::open(folder / "big.json"); }),
            "DIR/big.json: 16777217 bytes; expected at most 16777216 of a configuration");
}

} // namespace
