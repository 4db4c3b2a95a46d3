// Facts that come from code where no table has them: linker stubs and the ends of threads. The bytes are those of
// linkers and libcs, as objdump shows them.
#include <catch2/catch.hpp>

#include <algorithm>
#include <initializer_list>
#include <vector>

#include "fake_modules.h"
#include "unwind/arch/arch.h"
#include "unwind/walk/trampoline.h"

using namespace flamewire::unwind;

namespace {

using Code = std::vector<std::byte>;

Code bytes(std::initializer_list<unsigned> list) {
    Code code;
    for (const unsigned byte : list) code.push_back(static_cast<std::byte>(byte));
    return code;
}

Code words(std::initializer_list<std::uint32_t> list) {
    Code code;
    for (const std::uint32_t word : list)
        for (unsigned shift = 0; shift < 32; shift += 8) code.push_back(static_cast<std::byte>(word >> shift));
    return code;
}

std::string text(const Code& code) { return {reinterpret_cast<const char*>(code.data()), code.size()}; }

// Whether the code from this instruction on is a stub.
bool is_stub(const ArchInfo& arch, const Code& code, std::size_t at = 0, const Code& before = {}) {
    return arch.is_stub(before, std::span(code).subspan(at));
}

}  // namespace

TEST_CASE("code: PLT entries of x86-64 and x86") {
    CHECK(is_stub(arch_x86_64, bytes({0xff, 0x25, 0xe2, 0x2f, 0, 0})));
    CHECK(is_stub(arch_x86_64, bytes({0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0xe2, 0x2f, 0, 0})));
    CHECK_FALSE(is_stub(arch_x86_64, bytes({0xff, 0x15, 0xe2, 0x2f, 0, 0})));  // call *N(%rip)
    CHECK_FALSE(is_stub(arch_x86_64, bytes({0xf3, 0x0f, 0x1e, 0xfa, 0x55})));  // a function
    // It has already pushed a word when it jumps.
    CHECK_FALSE(is_stub(arch_x86_64, bytes({0x68, 0, 0, 0, 0, 0xe9, 0, 0, 0, 0})));
    CHECK_FALSE(is_stub(arch_x86_64, bytes({0xff})));
    CHECK_FALSE(is_stub(arch_x86_64, {}));
    CHECK(is_stub(arch_x86, bytes({0xff, 0x25, 0, 0xc0, 4, 8})));
    CHECK(is_stub(arch_x86, bytes({0xf3, 0x0f, 0x1e, 0xfb, 0xff, 0xa3, 0x0c, 0, 0, 0})));
    CHECK_FALSE(is_stub(arch_x86, bytes({0xff, 0x93, 0x0c, 0, 0, 0})));
}

TEST_CASE("code: PLT entries of aarch64") {
    const Code entry = words({0xb0000bd0, 0xf9400211, 0x91000210, 0xd61f0220});
    for (const std::size_t at : {0u, 4u, 8u, 12u}) CHECK(is_stub(arch_aarch64, entry, at));
    CHECK(is_stub(arch_aarch64, words({0xd503245f, 0xb0000bd0, 0xf9400211, 0x91000210, 0xd61f0220})));  // bti c
    CHECK(is_stub(arch_aarch64, words({0x90000010, 0x91000210, 0xd61f0200})));                          // a veneer
    CHECK_FALSE(is_stub(arch_aarch64, words({0xb0000bd0, 0xf9400211, 0x91000210, 0xd63f0220})));        // blr x17
    CHECK_FALSE(is_stub(arch_aarch64, words({0xb0000bd0, 0xf9400211, 0x91000210})));                    // continues
    CHECK_FALSE(is_stub(arch_aarch64, {}));
    // The first entry starts with a push.
    const Code plt0 = words({0xa9bf7bf0, 0x90000bd0, 0xf947fe11, 0x913fe210, 0xd61f0220});
    CHECK_FALSE(is_stub(arch_aarch64, plt0));
    for (const std::size_t at : {4u, 8u, 12u, 16u})
        CHECK_FALSE(
            is_stub(arch_aarch64, plt0, at, Code(plt0.begin(), plt0.begin() + static_cast<std::ptrdiff_t>(at))));
    // An entry that follows it does not.
    CHECK(is_stub(arch_aarch64, entry, 0, words({0xd61f0220, 0xd503201f, 0xd503201f, 0xd503201f})));
}

TEST_CASE("code: PLT entries and veneers of arm") {
    const Code entry = words({0xe28fc600, 0xe28ccae5, 0xe5bcf894});
    for (const std::size_t at : {0u, 4u, 8u}) CHECK(is_stub(arch_arm, entry, at));
    CHECK(is_stub(arch_arm, words({0xe7fd4778, 0xe28fc600, 0xe28ccae5, 0xe5bcf894})));  // bx pc, for Thumb callers
    CHECK(is_stub(arch_arm, words({0xe59fc004, 0xe08fc00c, 0xe12fff1c})));              // a veneer by bx ip
    CHECK(is_stub(arch_arm, words({0xe51ff004})));                                      // ldr pc, [pc, #-4]
    CHECK(is_stub(arch_arm, words({0xe300c010, 0xe340c001, 0xe12fff1c})));              // movw, movt, bx ip
    // Thumb: movw ip, movt ip, add ip, pc, ldr.w pc, [ip].
    CHECK(
        is_stub(arch_arm, bytes({0x40, 0xf2, 0x10, 0x0c, 0xc0, 0xf2, 0x01, 0x0c, 0xfc, 0x44, 0xdc, 0xf8, 0x00, 0xf0})));
    CHECK(is_stub(arch_arm, bytes({0x60, 0x47})));                                            // bx ip
    CHECK_FALSE(is_stub(arch_arm, bytes({0x70, 0x47})));                                      // bx lr
    CHECK_FALSE(is_stub(arch_arm, words({0xe52de004, 0xe59fe004, 0xe08fe00e, 0xe5bef008})));  // the first entry pushes
    CHECK_FALSE(is_stub(arch_arm, words({0xe28fc600, 0xe28ccae5, 0xe1a00000})));
    CHECK_FALSE(is_stub(arch_arm, {}));
}

TEST_CASE("code: the end of a thread") {
    CHECK(arch_x86_64.ends_thread(bytes({0x89, 0xc7, 0x31, 0xc0, 0xb0, 0x3c, 0x0f, 0x05})));  // musl's clone
    CHECK_FALSE(arch_x86_64.ends_thread(bytes({0x89, 0xc7, 0x31, 0xc0, 0xb0, 0x3d, 0x0f, 0x05})));
    CHECK(arch_x86.ends_thread(bytes({0x89, 0xc3, 0x31, 0xc0, 0x40, 0xcd, 0x80})));
    CHECK(arch_aarch64.ends_thread(words({0xd2800ba8, 0xd4000001})));
    CHECK_FALSE(arch_aarch64.ends_thread(words({0xd2801168, 0xd4000001})));
    CHECK(arch_arm.ends_thread(bytes({0x4f, 0xf0, 0x01, 0x07, 0x00, 0xdf})));  // glibc's: mov.w r7, #1; svc 0
    CHECK(arch_arm.ends_thread(words({0xe3a07001, 0xef000000})));              // musl's
    CHECK_FALSE(arch_arm.ends_thread(words({0xe3a07077, 0xef000000})));
    for (const ArchInfo* arch : {&arch_x86_64, &arch_x86, &arch_aarch64, &arch_arm}) CHECK_FALSE(arch->ends_thread({}));
}

namespace {

// How to leave the frame at an instruction of a trampoline: the distance of the CFA from sp, and whether the frame
// pointer and the return address are saved below it.
struct ExpectedRule {
    std::size_t at;
    std::int32_t cfa_offset;
    bool saves_frame_pointer, return_in_link, frame_pointer_safe;
};

void check_trampoline(const ArchInfo& arch, const Code& trampoline, const std::vector<ExpectedRule>& each,
                      std::size_t after_call, std::size_t prefix = 0) {
    REQUIRE(arch.trampoline_before + arch.trampoline_after <= max_trampoline_window);
    // Between two copies of itself, as CPython lays trampolines out.
    Code code = trampoline;
    code.resize((trampoline.size() + 15) / 16 * 16);
    const std::size_t begin = code.size();
    code.insert(code.end(), trampoline.begin(), trampoline.end());
    code.resize((code.size() + 15) / 16 * 16);
    code.insert(code.end(), trampoline.begin(), trampoline.end());
    std::size_t instructions = 0;
    for (std::size_t at = 0; at < trampoline.size(); ++at) {
        INFO("at " << at);
        // The range that the agent reads: a fixed number of bytes on each side, and fewer at the edges of the memory.
        const std::size_t from = begin + at > arch.trampoline_before ? begin + at - arch.trampoline_before : 0;
        const std::size_t to = std::min(code.size(), begin + at + arch.trampoline_after);
        const auto window = std::span(code).subspan(from, to - from);
        const auto rule = trampoline_rule(window, begin + at - from, false, arch);
        const auto returned = trampoline_rule(window, begin + at - from, true, arch);
        CHECK(returned.has_value() == (at == after_call));
        const auto expected =
            std::find_if(each.begin(), each.end(), [&](const ExpectedRule& left) { return left.at == at; });
        REQUIRE(rule.has_value() == (expected != each.end()));
        if (!rule) continue;
        if (at == after_call) CHECK(returned->cfa_offset == rule->cfa_offset);
        ++instructions;
        CHECK(rule->kind == Rule::Kind::compact);
        CHECK(rule->cfa_register == arch.names.sp);
        CHECK(rule->cfa_offset == expected->cfa_offset);
        CHECK((rule->saved != 0) == expected->saves_frame_pointer);
        CHECK(leaves_frame_pointer(*rule, arch) == !expected->saves_frame_pointer);
        CHECK(rule->return_in_link == expected->return_in_link);
        CHECK(rule->frame_pointer_safe == expected->frame_pointer_safe);
        // The row holds up to the next instruction.
        const auto next = std::next(expected);
        CHECK(at + rule->after == (next == each.end() ? trampoline.size() : next->at));
    }
    CHECK(instructions == each.size());
    // With any byte changed, it is another function. Bytes that may precede it (`prefix`) matter only in that position.
    for (std::size_t at = prefix; at < trampoline.size(); ++at) {
        INFO("changed byte " << at);
        Code other = trampoline;
        other[at] ^= std::byte{0x20};
        for (const ExpectedRule& left : each) CHECK_FALSE(trampoline_rule(other, left.at, false, arch));
    }
    for (std::size_t size = 0; size < trampoline.size(); ++size)
        CHECK_FALSE(trampoline_rule(std::span(trampoline).first(size), std::min(size, after_call), true, arch));
}

}  // namespace

// The bytes are what GNU as generates from CPython's Python/asm_trampoline.S (3.12, 3.13), asm_trampoline_x86_64.S and
// asm_trampoline_aarch64.S, without and with -fcf-protection or -mbranch-protection.
TEST_CASE("code: CPython's trampolines of x86-64, at each instruction") {
    check_trampoline(arch_x86_64, bytes({0x48, 0x83, 0xec, 8, 0xff, 0xd1, 0x48, 0x83, 0xc4, 8, 0xc3}),
                     {{0, 8, false, false, false},
                      {4, 16, false, false, false},
                      {6, 16, false, false, false},
                      {10, 8, false, false, false}},
                     6);
    check_trampoline(arch_x86_64,
                     bytes({0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x83, 0xec, 8, 0xff, 0xd1, 0x48, 0x83, 0xc4, 8, 0xc3}),
                     {{0, 8, false, false, false},
                      {4, 8, false, false, false},
                      {8, 16, false, false, false},
                      {10, 16, false, false, false},
                      {14, 8, false, false, false}},
                     10, 4);
    check_trampoline(arch_x86_64, bytes({0x55, 0x48, 0x89, 0xe5, 0xff, 0xd1, 0x5d, 0xc3}),
                     {{0, 8, false, false, false},
                      {1, 16, true, false, false},
                      {4, 16, true, false, true},
                      {6, 16, true, false, true},
                      {7, 8, false, false, false}},
                     6);
    check_trampoline(arch_x86_64, bytes({0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5, 0xff, 0xd1, 0x5d, 0xc3}),
                     {{0, 8, false, false, false},
                      {4, 8, false, false, false},
                      {5, 16, true, false, false},
                      {8, 16, true, false, true},
                      {10, 16, true, false, true},
                      {11, 8, false, false, false}},
                     10, 4);
}

TEST_CASE("code: CPython's trampolines of aarch64, at each instruction") {
    check_trampoline(arch_aarch64, words({0xa9bf7bfd, 0x910003fd, 0xd63f0060, 0xa8c17bfd, 0xd65f03c0}),
                     {{0, 0, false, true, false},
                      {4, 16, true, false, true},
                      {8, 16, true, false, true},
                      {12, 16, true, false, true},
                      {16, 0, false, true, false}},
                     12);
    struct Signed {
        std::uint32_t first, last;
    };
    const Signed each = GENERATE(Signed{0xd503233f, 0xd50323bf}, Signed{0xd503237f, 0xd50323ff});  // by key A, B
    check_trampoline(arch_aarch64,
                     words({each.first, 0xa9bf7bfd, 0x910003fd, 0xd63f0060, 0xa8c17bfd, each.last, 0xd65f03c0}),
                     {{0, 0, false, true, false},
                      {4, 0, false, true, false},
                      {8, 16, true, false, true},
                      {12, 16, true, false, true},
                      {16, 16, true, false, true},
                      {20, 0, false, true, false},
                      {24, 0, false, true, false}},
                     16, 4);
    // bti c
    check_trampoline(arch_aarch64, words({0xd503245f, 0xa9bf7bfd, 0x910003fd, 0xd63f0060, 0xa8c17bfd, 0xd65f03c0}),
                     {{0, 0, false, true, false},
                      {4, 0, false, true, false},
                      {8, 16, true, false, true},
                      {12, 16, true, false, true},
                      {16, 16, true, false, true},
                      {20, 0, false, true, false}},
                     16, 4);
    CHECK_FALSE(
        trampoline_rule(words({0xa9bf7bfd, 0x910003fd, 0xd63f0060, 0xa8c17bfd, 0xd65f03c0}), 0, false, arch_arm));
}

TEST_CASE("code: a walk from a stub, and to the end of a thread, without tables") {
    // In a stub at 0x1000, called at 0x1150 by a function that the thread's start at 0x1204 called.
    constexpr std::uint64_t bias = 0x400000, stack_at = 0x7000;
    struct Case {
        Arch arch;
        std::uint8_t sp, pc, link;
        std::uint8_t word;
        Code stub, exit;
    };
    const Case each = GENERATE(
        Case{Arch::x86_64, 7, 16, no_register, 8, bytes({0xff, 0x25, 0, 0, 0, 0}),
             bytes({0x89, 0xc7, 0x31, 0xc0, 0xb0, 0x3c, 0x0f, 0x05})},
        Case{Arch::aarch64, 31, 32, 30, 8, words({0xb0000bd0, 0xf9400211, 0x91000210, 0xd61f0220}),
             words({0xd2800ba8, 0xd4000001})},
        Case{Arch::arm, 13, 15, 14, 4, words({0xe28fc600, 0xe28ccae5, 0xe5bcf894}), words({0xe3a07001, 0xef000000})});
    const bool on_stack = each.link == no_register;
    const std::uint8_t column = register_names(each.arch).return_column;
    fake::modules().clear();
    fake::Module& module = fake::modules()[1];
    module.arch = each.arch;
    module.memory[0x1000] = text(each.stub);
    module.memory[0x1204] = text(each.exit);
    FrameRow row;  // 0x1100: one word of local variables, then the return address
    row.start = 0x1100;
    row.end = 0x1200;
    row.cfa_register = each.sp;
    row.cfa_offset = 2 * each.word;
    row.return_column = column;
    row.registers[column] = {.kind = RegisterRule::Kind::at_cfa, .offset = -std::int64_t{each.word}};
    module.rows = {row};

    // [return address of the stub's caller], local variable, return address to the end of the thread
    std::vector<std::uint64_t> stack{0x55, bias + 0x1204};
    if (on_stack) stack.insert(stack.begin(), bias + 0x1150);
    std::string copy;
    for (const std::uint64_t value : stack)
        for (unsigned byte = 0; byte < each.word; ++byte) copy.push_back(static_cast<char>(value >> byte * 8));
    Registers start(each.arch);
    start.set(each.pc, bias + 0x1000);
    start.set(each.sp, stack_at);
    if (!on_stack) start.set(each.link, bias + 0x1150);

    struct Map final : CodeMap {
        std::optional<CodePiece> find(std::uint64_t address) override {
            if (address < bias + 0x1000 || address >= bias + 0x2000) return {};
            return CodePiece{.start = bias + 0x1000, .end = bias + 0x2000, .module = 1, .bias = bias};
        }
    } map;
    fake::Files files;
    UnwinderOptions options;
    options.open_tables = fake::open_tables;
    options.use_libunwind = false;
    Unwinder unwinder(files, options);
    std::vector<Frame> frames;
    const StopReason stop =
        unwinder.walk(start, {.address = stack_at, .bytes = flamewire::as_bytes_view(copy)}, map, 10, frames);
    CHECK(stop == StopReason::root);
    REQUIRE(frames.size() == 3);
    CHECK(frames[1].pc == bias + 0x1150);
    CHECK(frames[1].sp == stack_at + (on_stack ? each.word : 0));
    CHECK(frames[1].found_by == FoundBy::rule);
    CHECK(frames[2].pc == bias + 0x1204);
}
