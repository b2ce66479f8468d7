// Files that must be refused, and what they may cost until then.
#include "rapt/models/safetensors.h"

#include <fstream>

#include "tests/testing/testing.h"

namespace rapt::models {
namespace {

using testing::TemporaryFolder;

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string framed(uint64_t length, const std::string& header, const std::string& data) {
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + header + data;
}

class Safetensors : public ::testing::Test {
 protected:
  void write(const std::string& content) {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << content;
  }
  void write(const std::string& header, const std::string& data) {
    write(framed(header.size(), header, data));
  }
  // What opening the file says; it must be a refusal of kind model.
  std::string refusal() {
    try {
      SafetensorsFile file(path_);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::model) << error.what();
      return error.what();
    } catch (const std::exception& error) {
      ADD_FAILURE() << "expected a rapt::Error, got: " << error.what();
      return "";
    }
    ADD_FAILURE() << "accepted";
    return "";
  }
  std::string refusal(const std::string& header, const std::string& data = "") {
    write(header, data);
    return refusal();
  }
  // A header with one tensor w.
  std::string one(const std::string& type, const std::string& shape, const std::string& offsets) {
    return R"({"w":{"dtype":")" + type + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets +
           "}}";
  }

  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_.path() / "model.safetensors";
};

TEST_F(Safetensors, R50_FilesCutAnywhereAreRefused) {
  const std::string header =
      R"({"a":{"dtype":"F32","shape":[5000],"data_offsets":[0,20000]},"b":{"dtype":"U8","shape":[77],"data_offsets":[20000,20077]}})";
  const std::string whole = framed(header.size(), header, std::string(20077, 'x'));
  write(whole);
  EXPECT_EQ(SafetensorsFile(path_).tensors().size(), 2u);
  for (size_t size = 0; size < whole.size(); size += size < 8 + header.size() ? 1 : 4096) {
    write(whole.substr(0, size));
    const std::string message = refusal();
    EXPECT_TRUE(holds(message, "model.safetensors")) << message;
  }
  write(whole.substr(0, whole.size() - 1));
  EXPECT_TRUE(
      holds(refusal(), "describes 20077 bytes of data, the file holds 20076: it was cut short"));
}

TEST_F(Safetensors, R50_FileThatIsShortenedAfterOpeningIsAnError) {
  write(one("F32", "[100000]", "[0,400000]"), std::string(400000, 'x'));
  const SafetensorsFile file(path_);
  std::filesystem::resize_file(path_, 200000);
  std::vector<float> values(100000);
  const std::string message =
      testing::error_of([&] { file.read(file.at("w"), std::span(values)); });
  EXPECT_TRUE(holds(message, "shortened while it was read")) << message;
}

TEST_F(Safetensors, R51_SizesThatOverflowAreRefused) {
  EXPECT_TRUE(
      holds(refusal(one("F32", "[4398046511105]", "[0,4]"), "xxxx"), "too large for an axis"));
  EXPECT_TRUE(
      holds(refusal(one("F32", "[1099511627776,1099511627776]", "[0,4]"), "xxxx"), "too large"));
  EXPECT_TRUE(holds(refusal(one("F32", "[4294967296,4294967296]", "[0,0]")), "too large"));
  EXPECT_TRUE(
      holds(refusal(one("F64", "[1073741824,1073741824]", "[0,8]"), "xxxxxxxx"), "too large"));
  EXPECT_TRUE(
      holds(refusal(one("U8", "[4]", "[18446744073709551612,18446744073709551616]"), "xxxx"),
            "too large for an offset"));
  EXPECT_TRUE(holds(refusal(one("U8", "[4]", "[9223372036854775807,9223372036854775811]"), "xxxx"),
                    "too large for an offset"));
  refusal(
      R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,9223372036854775744]},)"
      R"("b":{"dtype":"U8","shape":[1],"data_offsets":[9223372036854775744,9223372036854775807]}})",
      "xx");
}

TEST_F(Safetensors, R54_DuplicateNamesAreRefusedByName) {
  for (const std::string second : {"[0,4]", "[4,8]"}) {
    const std::string entry = R"("w":{"dtype":"F32","shape":[1],"data_offsets":)";
    EXPECT_TRUE(holds(refusal("{" + entry + "[0,4]}," + entry + second + "}}", "xxxxxxxx"),
                      "duplicate tensor name w"));
  }
  EXPECT_TRUE(
      holds(refusal(R"({"__metadata__":{},"__metadata__":{}})"), "duplicate key __metadata__"));
  EXPECT_TRUE(holds(refusal(R"({"__metadata__":{"a":"1","a":"2"}})"), "duplicate metadata key a"));
  EXPECT_TRUE(
      holds(refusal(R"({"w":{"dtype":"U8","shape":[1],"shape":[1],"data_offsets":[0,1]}})", "x"),
            "duplicate key shape"));
}

std::string two(const std::string& a, const std::string& b) {
  return R"({"k_proj":{"dtype":"U8","shape":[16],"data_offsets":)" + a +
         R"(},"v_proj":{"dtype":"U8","shape":[16],"data_offsets":)" + b + "}}";
}

TEST_F(Safetensors, R55_RangesMustTileTheData) {
  EXPECT_TRUE(holds(refusal(two("[0,16]", "[0,16]"), std::string(16, 'x')), "ranges overlap"));
  EXPECT_TRUE(holds(refusal(two("[0,16]", "[15,31]"), std::string(31, 'x')), "ranges overlap"));
  EXPECT_TRUE(holds(refusal(two("[0,16]", "[32,48]"), std::string(48, 'x')), "leave bytes out"));
  EXPECT_TRUE(holds(refusal(two("[16,32]", "[32,48]"), std::string(48, 'x')), "leave bytes out"));
  EXPECT_TRUE(holds(refusal(two("[0,16]", "[16,32]"), std::string(33, 'x')),
                    "bytes that belong to nothing"));
  EXPECT_TRUE(holds(refusal("{}", "x"), "bytes that belong to nothing"));
}

TEST_F(Safetensors, R55_UnorderedHeadersAndEmptyTensorsAreFine) {
  write(two("[16,32]", "[0,16]"), std::string(16, 'v') + std::string(16, 'k'));
  const SafetensorsFile file(path_);
  EXPECT_EQ(file.tensors()[0].name, "v_proj");
  EXPECT_EQ(file.at("k_proj").offset, file.at("v_proj").offset + 16);
  write(
      R"({"e":{"dtype":"F32","shape":[0,7],"data_offsets":[4,4]},"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},)"
      R"("z":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}    )",
      std::string("\x00\x00\x80\x3f", 4));
  const SafetensorsFile scalars(path_);
  EXPECT_EQ(scalars.at("e").numel, 0);
  EXPECT_EQ(scalars.load(scalars.at("a"), DType::f32).item(), 1);
  EXPECT_EQ(scalars.load(scalars.at("e"), DType::f32).shape(), (Shape{0, 7}));
  write("{}", "");
  EXPECT_TRUE(SafetensorsFile(path_).tensors().empty());
}

TEST_F(Safetensors, R56_ShapeTypeAndRangeMustAgree) {
  EXPECT_TRUE(holds(refusal(one("F32", "[1024,1024]", "[0,4]"), "xxxx"),
                    "its shape and type take 4194304 bytes, its range holds 4"));
  EXPECT_TRUE(
      holds(refusal(one("F32", "[1]", "[4,0]"), "xxxx"), "ends at 0, before it begins at 4"));
  EXPECT_TRUE(holds(refusal(one("F32", "[1]", "[0]"), "xxxx"), "expected two data_offsets, got 1"));
  EXPECT_TRUE(
      holds(refusal(one("F32", "[1]", "[0,4,8]"), "xxxx"), "expected two data_offsets, got 3"));
  EXPECT_TRUE(holds(refusal(one("F32", "[1]", "[-4,0]"), "xxxx"), "a negative number"));
  EXPECT_TRUE(holds(refusal(one("F32", "[1]", "[0,4.0]"), "xxxx"), "a fraction"));
  EXPECT_TRUE(holds(refusal(one("F32", "[1]", R"(["0","4"])"), "xxxx"), "a string"));
  EXPECT_TRUE(holds(refusal(one("F32", "[-1]", "[0,4]"), "xxxx"), "a negative number"));
  EXPECT_TRUE(holds(refusal(one("F32", "1", "[0,4]"), "xxxx"), "a number"));
  EXPECT_TRUE(holds(refusal(one("F32", "[[1]]", "[0,4]"), "xxxx"), "an array"));
  EXPECT_TRUE(holds(refusal(one("F33", "[1]", "[0,4]"), "xxxx"), "unknown type F33"));
  for (const uint64_t length : {UINT64_MAX - 3, UINT64_MAX, uint64_t{1} << 63, uint64_t{7}}) {
    write(framed(length, one("U8", "[4]", "[0,4]"), "xxxx"));
    refusal();
  }
}

TEST_F(Safetensors, HeadersThatSaySomethingElseAreRefused) {
  for (const std::string header :
       {"[]",
        "1",
        "null",
        "\"w\"",
        "{",
        "{}x",
        "{\"w\":1}",
        "{\"w\":[]}",
        "{\"w\":null}",
        "{\"w\":{}}",
        R"({"w":{"dtype":"U8","shape":[0]}})",
        R"({"w":{"shape":[0],"data_offsets":[0,0]}})",
        R"({"w":{"dtype":"U8","data_offsets":[0,0]}})",
        R"({"":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})",
        R"({"w":{"dtype":{"a":{}},"shape":[0],"data_offsets":[0,0]}})",
        R"({"w":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"more":1}})",
        R"({"__metadata__":{"a":1}})",
        R"({"__metadata__":{"a":{}}})",
        R"({"__metadata__":[]})",
        R"({"__metadata__":"a"})",
        "{\"\xff\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}",
        "        "}) {
    EXPECT_TRUE(holds(refusal(header), "model.safetensors: ")) << header;
  }
}

TEST_F(Safetensors, MissingFilesAndFoldersAreErrors) {
  EXPECT_TRUE(holds(refusal(), "cannot open it: No such file"));
  std::filesystem::create_directory(path_);
  EXPECT_TRUE(holds(refusal(), "expected a file"));
}

TEST_F(Safetensors, NumberOfTensorsIsLimited) {
  write(two("[0,16]", "[16,32]"), std::string(32, 'x'));
  Limits limits;
  limits.tensors = 1;
  EXPECT_TRUE(
      holds(testing::error_of([&] { SafetensorsFile(path_, limits); }), "more than 1 tensors"));
}

}  // namespace
}  // namespace rapt::models
