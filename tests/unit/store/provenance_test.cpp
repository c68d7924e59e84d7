// Provenance records: their letters, their time, their union.
#include "store/provenance.h"

#include "base/version.h"
#include "store/scratch.h"

#include <cstdlib>

namespace noether::store {
namespace {

TEST(Provenance, IsWrittenToTheLetter) {
  ::setenv("SOURCE_DATE_EPOCH", "1000000000", 1);
  const ProvenanceRecord record{"init", {"gpt2", "--name", "a \"b\"\n"}, 7, {{"tokenizer", "00ff"}}};
  EXPECT_EQ(to_json(record), std::string(R"({"tool":"init","version":")") + kVersion +
                                 R"(","arguments":["gpt2","--name","a \"b\"\n"],"seed":7,)"
                                 R"("time":"2001-09-09T01:46:40Z","inputs":[{"kind":"tokenizer","digest":"00ff"}]})");
  EXPECT_EQ(to_json({"eval", {}, {}, {}}), std::string(R"({"tool":"eval","version":")") + kVersion +
                                               R"(","arguments":[],"time":"2001-09-09T01:46:40Z","inputs":[]})");
  ::unsetenv("SOURCE_DATE_EPOCH");
}

TEST(Provenance, TakesArgumentsThatAreNotUtf8) {
  EXPECT_NE(to_json({"eval", {"\xff.h5"}, {}, {}}).find("\xef\xbf\xbd.h5"), std::string::npos);
}

TEST(Provenance, RefusesATimeThatIsNone) {
  for (const char* time : {"yesterday", "-1", "", "1e9", "99999999999999"}) {
    ::setenv("SOURCE_DATE_EPOCH", time, 1);
    EXPECT_EQ(message([] {
                to_json({"init", {}, {}, {}});
              }),
              fmt::format("SOURCE_DATE_EPOCH is \"{}\", expected seconds since 1970", time));
  }
  ::unsetenv("SOURCE_DATE_EPOCH");
}

// c was made of a and b, d of b: what is made of c and d has b's record once.
TEST(Provenance, UnitesTheHistoriesOfSeveralInputs) {
  const std::vector<std::string> all = extend_provenance({{"a", "b", "c"}, {"b", "d"}}, {"merge", {}, {}, {}});
  ASSERT_EQ(all.size(), 5U);
  EXPECT_EQ(std::vector<std::string>(all.begin(), all.end() - 1), (std::vector<std::string>{"a", "b", "c", "d"}));
  EXPECT_NE(all.back().find("\"merge\""), std::string::npos);
}

} // namespace
} // namespace noether::store
