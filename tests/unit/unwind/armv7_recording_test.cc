// A Thumb and ARM program without frame pointers, recorded on an armv7 processor (see fixture/make_armv7.py) and walked
// on any host. The expected frames come from gdb.
#include <catch2/catch.hpp>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/file.h"
#include "elf/elf_file.h"
#include "unwind/walk/unwinder.h"

using namespace flamewire;
using namespace flamewire::unwind;

namespace {

const std::string fixtures = UNWIND_FIXTURES;

struct Expected {
    std::uint64_t pc = 0, sp = 0;
    bool operator==(const Expected&) const = default;
};

struct Sample {
    std::string name;
    Registers registers{Arch::arm};
    std::uint64_t stack_address = 0;
    std::string stack;
    std::vector<Expected> frames;
};

std::string bytes_of_hex(const std::string& hex) {
    std::string bytes;
    for (std::size_t at = 0; at + 1 < hex.size(); at += 2)
        bytes.push_back(static_cast<char>(std::stoi(hex.substr(at, 2), nullptr, 16)));
    return bytes;
}

std::vector<Sample> read_recording() {
    std::ifstream file(fixtures + "/armv7.recording");
    std::vector<Sample> samples;
    std::string text;
    while (std::getline(file, text)) {
        std::istringstream line(text);
        std::string word;
        line >> std::hex >> word;
        std::uint64_t one = 0, two = 0;
        if (word == "sample") {
            samples.emplace_back();
            line >> samples.back().name;
        } else if (word == "register") {
            line >> one >> two;
            samples.back().registers.set(one, two);
        } else if (word == "stack") {
            std::string hex;
            line >> samples.back().stack_address >> hex;
            samples.back().stack = bytes_of_hex(hex);
        } else if (word == "frame") {
            line >> one >> two;
            samples.back().frames.push_back({one, two});
        }
    }
    return samples;
}

struct OneFile final : ModuleFiles {
    std::string bytes;
    Result<elf::ByteSource> open(ModuleId) override { return elf::source_of_bytes(as_bytes_view(bytes)); }
};
struct OnePiece final : CodeMap {
    std::optional<CodePiece> find(std::uint64_t address) override {
        if (address < 0x10000 || address >= 0x11000) return {};
        return CodePiece{.start = 0x10000, .end = 0x11000, .module = 1, .bias = 0};
    }
};

}  // namespace

TEST_CASE("armv7 recording") {
    const std::string name = GENERATE("armv7_exidx.elf", "armv7_debug_frame.elf");
    OneFile file;
    auto bytes = read_file(fixtures + "/" + name);
    REQUIRE(bytes);
    file.bytes = *std::move(bytes);
    OnePiece map;
    const std::vector<Sample> samples = read_recording();
    REQUIRE(samples.size() == 3);
    Unwinder unwinder(file);
    for (const Sample& sample : samples) {
        INFO(name << ", " << sample.name);
        REQUIRE(sample.frames.size() == 21);
        std::vector<Frame> frames;
        StopReason stop{};
        for (int walk = 0; walk < 2; ++walk) {  // the second time, rules come from the cache
            stop =
                unwinder.walk(sample.registers, {.address = sample.stack_address, .bytes = as_bytes_view(sample.stack)},
                              map, default_max_depth, frames);
            std::vector<Expected> found;
            for (const Frame& frame : frames) found.push_back({frame.pc, frame.sp});
            REQUIRE(found.size() == sample.frames.size());
            for (std::size_t at = 0; at < found.size(); ++at) {
                INFO("frame " << at << std::hex << " pc " << found[at].pc << " sp " << found[at].sp);
                CHECK(found[at] == sample.frames[at]);
                CHECK(frames[at].return_address == (at > 0));
            }
        }
        CHECK(stop == StopReason::root);
    }
}
