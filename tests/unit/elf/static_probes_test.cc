// Static probes of a program made here and of real libraries, compared with readelf, nm and the instructions at the
// probes. Operands are those that gcc and clang wrote for one source on five machines.
#include "elf/static_probes.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <sstream>
#include <tuple>

#include "elf_writer.h"
#include "real_files.h"

namespace flamewire::elf {
namespace {

// One line for each probe, in the order of the file.
std::string line_of(const StaticProbe& probe) {
    std::ostringstream line;
    line << probe.provider << ':' << probe.name << " at " << std::hex << probe.location << ", semaphore "
         << probe.semaphore << ", arguments " << probe.arguments << '\n';
    return line.str();
}

std::string probes_by_readelf(const std::string& path) {
    std::istringstream lines(output_of("readelf --notes '" + path + "' 2>/dev/null"));
    std::string text;
    StaticProbe probe;
    for (std::string line; std::getline(lines, line);) {
        std::istringstream in(line);
        std::string key, word;
        in >> key;
        if (key == "Provider:") in >> probe.provider;
        if (key == "Name:") in >> probe.name;
        // "Location: 0x0000000000001119, Base: 0x0000000000002000, Semaphore: 0x0000000000004000"
        if (key == "Location:") {
            in >> std::setbase(16) >> probe.location >> word >> word >> word >> word >> probe.semaphore;
        }
        if (key == "Arguments:") {
            probe.arguments = line.size() > line.find(": ") + 2 ? line.substr(line.find(": ") + 2) : "";
            text += line_of(probe);
        }
    }
    return text;
}

std::string probes_of(const std::string& path) {
    const RealFile file(path);
    const auto probes = read_static_probes(file.source, file.header, file.sections);
    if (!probes) return probes.error().message;
    std::string text;
    for (const StaticProbe& probe : *probes) text += line_of(probe);
    return text;
}

const std::string program = R"(#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>
#define SEMAPHORE(name) __extension__ unsigned short name##_semaphore __attribute__((section(".probes")))
SEMAPHORE(app_plain);
SEMAPHORE(app_watched);
SEMAPHORE(app_twelve);
SEMAPHORE(other_plain);
int work(int a, long b, char* c) {
    STAP_PROBE(app, plain);
    if (app_watched_semaphore) STAP_PROBE3(app, watched, a, b, c);
    STAP_PROBE12(app, twelve, a, b, *c, 4, 5, 6, 7, 8, 9, 10, 11, -12);
    return a + 1;
}
int also(int a) { STAP_PROBE1(other, plain, a); return a; }
)";

const std::string without_semaphores = R"(#include <sys/sdt.h>
int third(int a) { STAP_PROBE1(third, x, a); STAP_PROBE2(third, x, a, a * 2); return a; }
)";

TEST_CASE("probes of a program made here are those of readelf") {
    const ScratchFolder folder;
    folder.write("a.c", program);
    folder.write("b.c", without_semaphores);
    for (const char* options : {"-O0", "-O2"}) {
        folder.run(std::string("gcc ") + options +
                   " -fpic -shared -o probes.so a.c b.c && strip -o stripped.so probes.so");
        const std::string expected = probes_by_readelf(folder.file("probes.so"));
        CHECK(std::ranges::count(expected, '\n') == 6);
        CHECK(probes_of(folder.file("probes.so")) == expected);
        CHECK(probes_of(folder.file("stripped.so")) == probes_by_readelf(folder.file("stripped.so")));

        const RealFile file(folder.file("probes.so"));
        const auto probes = read_static_probes(file.source, file.header, file.sections).value();
        for (const StaticProbe& probe : probes) {
            CAPTURE(probe.provider, probe.name);
            const auto code = offset_of_vaddr(file.header.segments, probe.location);
            REQUIRE(code);
            CHECK(file.source(*code, 1).value() == "\x90");
            const std::string address = output_of("nm " + folder.file("probes.so") + " | awk '$3 == \"" +
                                                  probe.provider + "_" + probe.name + "_semaphore\" {print $1}'");
            CHECK(probe.semaphore == (address.empty() ? 0 : std::stoull(address, nullptr, 16)));
            if (probe.provider != "third") {
                CHECK_FALSE(offset_of_vaddr(file.header.segments, probe.semaphore));
                const auto counter = offset_of_vaddr(file.header.segments, probe.semaphore, 0);
                REQUIRE(counter);
                CHECK(file.source(*counter, 2).value() == std::string(2, '\0'));
            }
        }
    }
}

TEST_CASE("probes of this program's libraries are those of readelf") {
    for (const std::string& path : files_of_this_process()) {
        CAPTURE(path);
        CHECK(probes_of(path) == probes_by_readelf(path));
    }
}

// A note section, without the rest of an ELF file.
struct NoteFile {
    NoteFile(bool is_64, bool big_endian) : writer{is_64, big_endian} {
        header.is_64 = is_64;
        header.big_endian = big_endian;
    }
    void add(const std::string& owner, std::uint64_t type, const std::vector<std::uint64_t>& words,
             const std::string& text) {
        Writer content{writer.is_64, writer.big_endian};
        for (const std::uint64_t word : words) content.word(word);
        writer.u32(owner.size());
        writer.u32(content.out.size() + text.size());
        writer.u32(type);
        writer.out += owner;
        writer.pad_to((writer.out.size() + 3) / 4 * 4);
        writer.out += content.out + text;
        writer.pad_to((writer.out.size() + 3) / 4 * 4);
    }
    [[nodiscard]] std::string read(std::uint64_t base) const {
        std::vector<Section> sections = {{},
                                         {.name = ".note.stapsdt", .type = 7, .size = writer.out.size()},
                                         {.name = ".text", .type = 7, .size = writer.out.size()}};
        if (base != 0) sections.push_back({.name = ".stapsdt.base", .type = 1, .address = base});
        const auto probes = read_static_probes(source_of_bytes(as_bytes_view(writer.out)), header, sections);
        if (!probes) return probes.error().message;
        std::string text;
        for (const StaticProbe& probe : *probes) text += line_of(probe);
        return text;
    }

    Writer writer;
    Header header;
};

std::string text_of(const std::string& provider, const std::string& name, const std::string& arguments) {
    return provider + '\0' + name + '\0' + arguments + '\0';
}

TEST_CASE("notes of every class and byte order, also after prelink") {
    const std::string owner("stapsdt\0", 8);
    for (const bool is_64 : {false, true})
        for (const bool big_endian : {false, true}) {
            CAPTURE(is_64, big_endian);
            NoteFile file(is_64, big_endian);
            file.add(std::string("GNU\0", 4), 3, {1, 2, 3}, text_of("not", "this", ""));
            file.add(owner, 3, {0x1010, 0x2000, 0}, text_of("app", "one", "4@$1"));
            file.add(owner, 2, {0x1010, 0x2000, 0}, text_of("not", "this", ""));
            file.add(owner, 3, {0x1020, 0x2000}, "");
            file.add(owner, 3, {0x1020, 0x2000, 0}, text_of("app", "", "4@$1"));
            file.add(owner, 3, {0x1020, 0x2000, 0}, "app");
            file.add(owner, 3, {0x1030, 0x2000, 0x3000}, std::string("app\0two\0", 8));
            const auto lines = [](const char* first, const char* second, const char* semaphore) {
                return std::string("app:one at ") + first + ", semaphore 0, arguments 4@$1\napp:two at " + second +
                       ", semaphore " + semaphore + ", arguments \n";
            };
            CHECK(file.read(0) == lines("1010", "1030", "3000"));
            CHECK(file.read(0x2000) == lines("1010", "1030", "3000"));
            CHECK(file.read(0x12000) == lines("11010", "11030", "13000"));
            CHECK(file.read(0x1800) == lines("810", "830", "2800"));
            // The last note is cut.
            file.writer.out.resize(file.writer.out.size() - 1);
            CHECK(file.read(0) == "app:one at 1010, semaphore 0, arguments 4@$1\n");
            file.writer.out.resize(14);
            CHECK(file.read(0).empty());
        }
}

TEST_CASE("sections of probes outside the file or too large are errors") {
    const ByteSource source = source_of_bytes({});
    std::vector<Section> sections = {{.name = ".note.stapsdt", .type = 7, .offset = 0, .size = 100}};
    CHECK(read_static_probes(source, {}, sections).error().code == ErrorCode::invalid);
    sections[0].size = std::uint64_t{1} << 40;
    CHECK(read_static_probes(source, {}, sections).error().code == ErrorCode::too_large);
    sections[0].type = section_nobits;
    CHECK(read_static_probes(source, {}, sections)->empty());
}

std::string fetched(std::uint16_t machine, bool is_64, std::string_view arguments) {
    std::string text;
    for (const std::string& argument : fetch_arguments(machine, is_64, arguments))
        text += (text.empty() ? "" : " ") + (argument.empty() ? "-" : argument);
    return text;
}

TEST_CASE("operands in the language of uprobe_events") {
    struct Row {
        std::uint16_t machine;
        bool is_64;
        const char *arguments, *fetched;
    };
    const Row rows[] = {
        {62, true, "", ""},
        {62, true, "-1@-20(%rbp) 1@-24(%rbp) -2@-28(%rbp) 2@-32(%rbp)",
         "-20(%bp):s8 -24(%bp):u8 -28(%bp):s16 -32(%bp):u16"},
        {62, true, "-8@16(%rbp) 8@24(%rbp) -4@(%rcx)", "+16(%bp):s64 +24(%bp):u64 +0(%cx):s32"},
        {62, true, "-1@%al 1@%dil -2@%si 2@%dx", "%ax:s8 %di:u8 %si:s16 %dx:u16"},
        {62, true, "-4@%r8d 4@%r9d -8@%r11 8@%r10 2@%r12w 1@%r15b",
         "%r8:s32 %r9:u32 %r11:s64 %r10:u64 %r12:u16 %r15:u8"},
        {62, true, "8@%rax 8@%rbx 8@%rcx 8@%rdx 8@%rsi 8@%rdi 8@%rbp 8@%rsp 8@%rip",
         "%ax:u64 %bx:u64 %cx:u64 %dx:u64 %si:u64 %di:u64 %bp:u64 %sp:u64 %ip:u64"},
        {62, true, "4@%eax 4@%esp 2@%bp 1@%sil 1@%bpl 1@%spl 1@%bl 1@%cl 1@%dl",
         "%ax:u32 %sp:u32 %bp:u16 %si:u8 %bp:u8 %sp:u8 %bx:u8 %cx:u8 %dx:u8"},
        {62, true, "-4@$5 -4@$-1 -8@$549755813887", "\\5:s32 \\-1:s32 \\549755813887:s64"},
        {62, true, "8f@%rax 4f@.LC0(%rip) -4@counter(%rip) 8@-8(%rbp,%rax,8) 8@%fs:16 1@%ah 8@%xmm0", "- - - - - - -"},
        {62, true, "3@%eax @%eax -@%eax 4@ 4@% 4@$ 4@() 4@(%rax 4@r8 4@5 4@$0x5 4@$1- 16@%rax --4@%rax",
         "- - - - - - - - - - - - - -"},
        {62, true, "4@%r7 4@%r16 4@%r8x 4@%rr 4@%l 4@%xl 4@%r123 4@%r 4@%sl", "- - - - - - - - -"},
        {62, true, "%rdi  $3", "%di:u64 \\3:u64"},
        {3, false, "-1@%edx 1@%ebp -2@(%esp) 2@14(%esp)", "%dx:s8 %bp:u8 +0(%sp):s16 +14(%sp):u16"},
        {3, false, "-8@%ecx -8@24(%esp) 4@%r8 -4@$120 %eax", "- +24(%sp):s64 - \\120:s32 %ax:u32"},
        {183, true, "1@[sp, 31] -2@[sp, 28] 8@[sp] -8@[x8, 8] -4@[x29, -4]",
         "+31(%sp):u8 +28(%sp):s16 +0(%sp):u64 +8(%x8):s64 -4(%x29):s32"},
        {183, true, "-4@x1 -8@x2 4@w3 8@x30 8@sp 8@lr 8@fp -4@5 -4@-1 -4@#7",
         "%x1:s32 %x2:s64 %x3:u32 %x30:u64 %sp:u64 %lr:u64 %x29:u64 \\5:s32 \\-1:s32 \\7:s32"},
        {183, true, "8@[x0, x1, lsl 3] 8@[x0, x1] 8@x31 8@d0 8@[x0 8@[] 4@[x0, ] 8@[x0, 8]! 8@x",
         "- - - - - +0(%x0):u32 - -"},
        {183, true, "8@[x01", "-"},
        {40, false, "1@[r7, #7] -2@[r7, #-4] -4@[r5] 4@[fp, #-8]", "+7(%r7):u8 -4(%r7):s16 +0(%r5):s32 -8(%fp):u32"},
        {40, false, "-4@r4 1@r0 -4@lr 4@ip 4@sp 4@r10 4@r11 4@r12 4@r13 4@r14 4@sl 4@sb -4@#5 4@#-1",
         "%r4:s32 %r0:u8 %lr:s32 %ip:u32 %sp:u32 %r10:u32 %fp:u32 %ip:u32 %sp:u32 %lr:u32 %r10:u32 %r9:u32 \\5:s32 "
         "\\-1:u32"},
        {40, false, "-8@r6 4@r15 4@pc 4@[r0, r1] 8f@#1.5e+0 4@.LC0 4@ 4@p 4@\x20", "- - - - - - - - -"},
        {22, true, "1@175(%r11) -4@0(%r9) -4@%r2 8@%r15 -4@5 -4@-1",
         "+175(%r11):u8 +0(%r9):s32 %r2:s32 %r15:u64 \\5:s32 \\-1:s32"},
        {22, true, "8@%r16 8@%f0 8@8(%r1,%r2)", "- - -"},
        {21, true, "8@3 8@8(1) 8@%r3", "- - -"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.machine, row.arguments);
        CHECK(fetched(row.machine, row.is_64, row.arguments) == row.fetched);
    }
}

}  // namespace
}  // namespace flamewire::elf
