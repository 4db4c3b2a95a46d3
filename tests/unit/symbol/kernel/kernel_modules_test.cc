// Lines of a kernel module from a relocatable file, made by `ld -r` like a .ko, compared with GNU addr2line and its
// source lines. Also which file is used for a loaded module.
#include "symbol/kernel/kernel_modules.h"

#include <catch2/catch.hpp>

#include <fstream>
#include <sstream>

#include "../fixture.h"
#include "base/hex.h"
#include "symbol/kernel/kernel.h"
#include "symbol/symbolizer.h"

namespace flamewire::symbol {
namespace {

constexpr const char* source = R"(extern void outside(int);
static int table[4];
static inline __attribute__((always_inline)) int inner(int n) {
    outside(n);
    return table[n & 3];
}
__attribute__((noinline)) int first_function(int n) {
    return inner(n) + 1;
}
static __attribute__((noinline, used)) int second_function(int n) {
    outside(n * 2);
    return first_function(n) + 2;
}
__attribute__((section(".init.text"))) int start_it(void) {
    return second_function(3);
}
)";

class Ko {
public:
    explicit Ko(const std::string& options = "", const std::string& name = "some-driver.ko")
        : path(folder.path() + "/" + name) {
        std::ofstream(folder.path() + "/a.c") << source;
        output_of("cd " + folder.path() + " && gcc -O2 -g -ffreestanding -fno-pic -ffunction-sections " + options +
                  " -c a.c -o a.o && ld -r --build-id -o " + path + " a.o");
    }
    // The section of a function, which starts with that function.
    [[nodiscard]] std::string section_of(const std::string& function) const {
        return function == "start_it" ? ".init.text" : ".text." + function;
    }
    // The output of `addr2line -i -f`: "function@line" for each frame.
    [[nodiscard]] std::vector<std::string> expected(const std::string& function, std::uint64_t offset) const {
        std::ostringstream command;
        command << "addr2line -i -f -e " << path << " -j " << section_of(function) << " 0x" << std::hex << offset;
        std::istringstream lines(output_of(command.str()));
        std::vector<std::string> frames;
        for (std::string name, place; std::getline(lines, name) && std::getline(lines, place);)
            frames.push_back(name + " [some_driver]@" + std::to_string(std::stoul(place.substr(place.rfind(':') + 1))));
        return frames;
    }

    ScratchFolder folder;
    std::string path;
};

std::vector<std::string> shown(const StringPool& strings, const std::vector<IndexedFrame>& frames) {
    std::vector<std::string> texts;
    for (const IndexedFrame& frame : frames) {
        CHECK(strings.at(frame.file).ends_with("/a.c"));
        texts.push_back(strings.at(frame.function) + "@" + std::to_string(frame.line));
    }
    return texts;
}

Config given(const std::string& path) {
    Config config;
    config.binaries = {path};
    return config;
}

TEST_CASE("every address of a kernel module's functions, with inlined functions") {
    for (const char* options : {"", "-gdwarf-4", "-gz=zlib"}) {
        const Ko ko(options);
        StringPool strings;
        KernelModules modules(given(ko.path), "", "/nowhere", strings);
        std::size_t inlined = 0;
        for (const std::string function : {"first_function", "second_function", "start_it"}) {
            const std::string size = output_of("nm -S " + ko.path + " | awk '$4 == \"" + function + "\" {print $2}'");
            const std::uint64_t end = std::stoull(size, nullptr, 16);
            REQUIRE(end > 0);
            for (std::uint64_t offset = 0; offset < end; ++offset) {
                std::vector<IndexedFrame> frames;
                CAPTURE(options, function, offset);
                REQUIRE(modules.find("some_driver", function, offset, frames));
                CHECK(shown(strings, frames) == ko.expected(function, offset));
                inlined += frames.size() > 1 ? 1 : 0;
            }
        }
        CHECK(inlined > 0);
        std::vector<IndexedFrame> frames;
        CHECK_FALSE(modules.find("some_driver", "no_function", 0, frames));
        CHECK_FALSE(modules.find("other_driver", "first_function", 0, frames));
        CHECK(frames.empty());
    }
}

TEST_CASE("a module's file is found below the sysroot, and used only if it is the loaded build") {
    const Ko ko;
    const ScratchFolder root, sys;
    const std::string kept =
        root.copy(ko.path, "usr/lib/debug/lib/modules/6.1.0-test/kernel/drivers/some-driver.ko.debug");
    Config config;
    config.sysroot = root.path();
    std::vector<IndexedFrame> frames;
    {
        StringPool strings;
        CHECK(KernelModules(config, "6.1.0-test", sys.path(), strings).find("some_driver", "start_it", 0, frames));
        CHECK_FALSE(
            KernelModules(config, "6.1.0-other", sys.path(), strings).find("some_driver", "start_it", 0, frames));
    }
    // /sys/module/NAME/notes of the loaded module contains the bytes of the section.
    const std::string notes = sys.path() + "/some_driver/notes";
    std::filesystem::create_directories(notes);
    output_of("objcopy -O binary --only-section=.note.gnu.build-id " + ko.path + " " + notes + "/.note.gnu.build-id");
    REQUIRE(std::filesystem::file_size(notes + "/.note.gnu.build-id") > 20);
    StringPool strings;
    frames.clear();
    CHECK(KernelModules(config, "6.1.0-test", sys.path(), strings).find("some_driver", "start_it", 0, frames));
    const Ko other("-DOTHER -O1");
    std::filesystem::copy_file(other.path, kept, std::filesystem::copy_options::overwrite_existing);
    CHECK_FALSE(KernelModules(config, "6.1.0-test", sys.path(), strings).find("some_driver", "start_it", 0, frames));
}

TEST_CASE("a module's file with the compressions of distributions and boards, detected by content and not by name") {
    const Ko ko;
    StringPool plain_strings;
    std::vector<IndexedFrame> plain;
    REQUIRE(
        KernelModules(given(ko.path), "", "/nowhere", plain_strings).find("some_driver", "second_function", 4, plain));
    const std::vector<std::string> expected = shown(plain_strings, plain);
    CHECK(expected == ko.expected("second_function", 4));
    // With the commands of the kernel's build (scripts/Makefile.modinst).
    const std::vector<std::pair<std::string, std::string>> ways = {
        {"gzip -n", ".gz"}, {"xz --check=crc32 --lzma2=dict=1MiB", ".xz"}, {"zstd -T0", ".zst"}, {"xz", ".gz"}};
    for (const auto& [command, suffix] : ways) {
        CAPTURE(command, suffix);
        const ScratchFolder folder;
        const std::string path = folder.path() + "/some-driver.ko" + suffix;
        output_of(command + " -c < " + ko.path + " > " + path);
        StringPool strings;
        std::vector<IndexedFrame> frames;
        REQUIRE(KernelModules(given(path), "", "/nowhere", strings).find("some_driver", "second_function", 4, frames));
        CHECK(shown(strings, frames) == expected);
        // Truncated: no names, and no crash.
        for (const double part : {0.1, 0.5, 0.99}) {
            const auto bytes = static_cast<std::uintmax_t>(part * std::filesystem::file_size(path));
            std::filesystem::resize_file(path, bytes);
            frames.clear();
            CHECK_FALSE(
                KernelModules(given(path), "", "/nowhere", strings).find("some_driver", "second_function", 4, frames));
        }
    }
}

TEST_CASE("a module's file gives no lines for functions with equal names, and none without debug info") {
    const Ko ko;
    std::ofstream(ko.folder.path() + "/b.c")
        << "static __attribute__((noinline, used)) int second_function(int n) { return n; }\n";
    output_of("cd " + ko.folder.path() +
              " && gcc -O2 -g -ffreestanding -fno-pic -c b.c -o b.o && ld -r -o two.ko a.o b.o && strip -g -o bare.ko "
              "two.ko");
    StringPool strings;
    std::vector<IndexedFrame> frames;
    KernelModules two(given(ko.folder.path() + "/two.ko"), "", "/nowhere", strings);
    CHECK_FALSE(two.find("two", "second_function", 0, frames));
    CHECK(two.find("two", "first_function", 0, frames));
    KernelModules bare(given(ko.folder.path() + "/bare.ko"), "", "/nowhere", strings);
    CHECK_FALSE(bare.find("bare", "first_function", 0, frames));
}

TEST_CASE("a vmlinux with debug info: addresses are relative to _text, wherever the kernel was loaded") {
    const ScratchFolder folder;
    std::ofstream(folder.path() + "/a.c") << source << "void outside(int n) { table[n & 3] = n; }\n"
                                          << "__asm__(\".text\\n.globl _text\\n_text: .skip 64\\n\");\n";
    // Its own addresses differ from those where the kernel runs.
    const std::string path = folder.path() + "/vmlinux-of-a-board";
    output_of("cd " + folder.path() +
              " && gcc -O2 -g -ffreestanding -fno-pic -no-pie -nostdlib -nostartfiles -static -ffunction-sections"
              " -Wl,--build-id -Wl,-Ttext=0x40200000 -Wl,-e,start_it a.c -o " +
              path);
    ModuleIdentity kernel;
    kernel.kind = ModuleKind::kernel;
    kernel.path = "[kernel]";
    kernel.build_id = build_id_of(path);
    kernel.boot_id = "of another machine";
    REQUIRE(kernel.build_id.size() == 20);
    Symbolizer symbolizer(given(path));
    const std::uint64_t begin =
        std::stoull(output_of("nm " + path + " | awk '$3 == \"first_function\" {print $1}'"), nullptr, 16);
    REQUIRE(begin > 0x40200000);
    std::vector<CodeAddress> addresses;
    for (std::uint64_t offset = 0; offset < 12; ++offset) addresses.push_back({begin + offset - 0x40200000, false});
    const Resolved resolved = symbolizer.resolve(kernel, addresses);
    for (std::size_t i = 0; i < addresses.size(); ++i) {
        std::ostringstream command, shown;
        command << "addr2line -i -f -e " << path << " 0x" << std::hex << begin + i << " | sed 's/ (discriminator .*//'";
        for (std::uint32_t frame = resolved.first[i]; frame < resolved.first[i + 1]; ++frame)
            shown << resolved.strings[resolved.frames[frame].function] << "\n"
                  << resolved.strings[resolved.frames[frame].file] << ":" << resolved.frames[frame].line << "\n";
        CHECK(shown.str() == output_of(command.str()));
    }
    // Another build is refused.
    kernel.build_id[0] = static_cast<char>(kernel.build_id[0] ^ 1);
    CHECK(symbolizer.resolve(kernel, addresses).frames.empty());
}

}  // namespace
}  // namespace flamewire::symbol
