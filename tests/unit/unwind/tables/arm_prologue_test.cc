// Effects of instructions on the stack, and the rows in prologues and epilogues. The code is what gcc and clang emit,
// as objdump shows it. The rows are derived by hand.
#include "unwind/tables/arm_prologue.h"

#include <catch2/catch.hpp>

#include <map>
#include <vector>

#include "unwind/code/arm_instruction.h"

using namespace flamewire::unwind;
using Kind = CodeEffect::Kind;
using Rule = RegisterRule::Kind;

namespace {

constexpr std::uint64_t function = 0x8000;

void check(const CodeEffect& effect, Kind kind, std::int64_t bytes = 0, std::uint32_t mask = 0, unsigned reg = 0) {
    CHECK(effect.kind == kind);
    if (kind == Kind::other || kind == Kind::none || kind == Kind::call || kind == Kind::compute_sp) return;
    CHECK(effect.bytes == bytes);
    CHECK(effect.mask == mask);
    CHECK(effect.reg == reg);
}

// A function's code at 0x8000 and the row that .ARM.exidx gives for its body.
struct Function {
    std::map<std::uint64_t, std::uint16_t> halves;
    std::uint64_t end = function;
    FrameRow body;

    void thumb(std::initializer_list<unsigned> code) {
        for (const unsigned half : code) {
            halves[end] = static_cast<std::uint16_t>(half);
            end += 2;
        }
    }
    void arm(std::initializer_list<std::uint32_t> code) {
        for (const std::uint32_t word : code) thumb({word & 0xffff, word >> 16});
    }
    // Sets the row of the body: CFA = base + offset, and registers at these offsets from the CFA.
    void describes(std::uint8_t base, std::int64_t offset, const std::map<unsigned, std::int64_t>& saved) {
        body.cfa_register = base;
        body.cfa_offset = offset;
        body.return_column = 14;
        for (const auto& [number, place] : saved) body.registers[number] = {.kind = Rule::at_cfa, .offset = place};
    }
    [[nodiscard]] FrameRow at(std::uint64_t address) const {
        FrameRow row = body;
        row.start = function + 1;
        row.end = end;
        const WordReader read = [this](std::uint64_t place) -> std::optional<std::uint32_t> {
            const auto low = halves.find(place), high = halves.find(place + 2);
            if (low == halves.end()) return {};
            return low->second | std::uint32_t{high == halves.end() ? std::uint16_t{0} : high->second} << 16;
        };
        refine_at_edges(read, function, address, row);
        return row;
    }
    // Expects "CFA = base + offset" and exactly these registers in memory.
    void check_at(std::uint64_t address, std::uint8_t base, std::int64_t offset,
                  const std::map<unsigned, std::int64_t>& saved) const {
        INFO("at " << std::hex << address);
        const FrameRow row = at(address);
        CHECK(unsigned{row.cfa_register} == unsigned{base});
        CHECK(row.cfa_offset == offset);
        CHECK(unsigned{row.return_column} == 14);
        for (unsigned number = 0; number < 16; ++number) {
            const auto found = saved.find(number);
            INFO("r" << number);
            CHECK(row.registers[number].kind == (found == saved.end() ? Rule::same : Rule::at_cfa));
            if (found != saved.end()) CHECK(row.registers[number].offset == found->second);
        }
    }
    void check_body(std::uint64_t address) const {
        INFO("at " << std::hex << address);
        const FrameRow row = at(address);
        CHECK(row.start == function + 1);
        CHECK(row.cfa_offset == body.cfa_offset);
        CHECK(row.registers == body.registers);
    }
};

}  // namespace

TEST_CASE("ARM instructions and the stack") {
    constexpr unsigned lr = 14, fp = 11;
    check(arm_effect(0xe92d4070), Kind::push, 16, 0x4070);       // push {r4, r5, r6, lr}
    check(arm_effect(0xe8bd8070), Kind::pop, 16, 0x8070);        // pop {r4, r5, r6, pc}
    check(arm_effect(0xe52de004), Kind::push, 4, 1u << lr);      // push {lr}
    check(arm_effect(0xe52de008), Kind::push, 8, 1u << lr);      // str lr, [sp, #-8]!
    check(arm_effect(0xe49df004), Kind::pop, 4, 1u << 15);       // pop {pc}
    check(arm_effect(0xe24ddf52), Kind::add, -328);              // sub sp, sp, #328
    check(arm_effect(0xe28dd008), Kind::add, 8);                 // add sp, sp, #8
    check(arm_effect(0xe28db01c), Kind::copy_to, 28, 0, fp);     // add fp, sp, #28
    check(arm_effect(0xe24bd01c), Kind::copy_from, -28, 0, fp);  // sub sp, fp, #28
    check(arm_effect(0xe1a0600d), Kind::copy_to, 0, 0, 6);       // mov r6, sp
    check(arm_effect(0xe1a0d006), Kind::copy_from, 0, 0, 6);     // mov sp, r6
    check(arm_effect(0xed2d8b06), Kind::push, 24);               // vpush {d8-d10}
    check(arm_effect(0xecbd8b06), Kind::pop, 24);                // vpop {d8-d10}
    check(arm_effect(0xe12fff1e), Kind::returns);                // bx lr
    check(arm_effect(0xeafffffe), Kind::jump, 0);                // b .
    check(arm_effect(0xea000001), Kind::jump, 12);
    check(arm_effect(0x1a000001), Kind::branch, 12);      // bne
    check(arm_effect(0x012fff1e), Kind::branch);          // bxeq lr
    check(arm_effect(0xeb000001), Kind::call);            // bl
    check(arm_effect(0xfa000001), Kind::call);            // blx
    check(arm_effect(0xe12fff33), Kind::call);            // blx r3
    check(arm_effect(0xe12fff13), Kind::indirect);        // bx r3
    check(arm_effect(0xe16d40f8), Kind::push, 8, 0x30);   // strd r4, [sp, #-8]!
    check(arm_effect(0xe0cd40d8), Kind::pop, 8, 0x30);    // ldrd r4, [sp], #8
    check(arm_effect(0xe89b0ff0), Kind::none);            // ldm fp, {r4-fp}
    check(arm_effect(0xe89ba800), Kind::other);           // ldm fp, {fp, sp, pc}
    check(arm_effect(0xe88d1001), Kind::none);            // stm sp, {r0, ip}
    check(arm_effect(0xef000000), Kind::none);            // svc
    check(arm_effect(0xe320f000), Kind::none);            // nop
    check(arm_effect(0xf57ff05b), Kind::none);            // dmb ish
    check(arm_effect(0xf421070d), Kind::none);            // vld1.8 {d0}, [r1]!
    check(arm_effect(0xf44d070d), Kind::other);           // vst1.8 {d16}, [sp]!
    check(arm_effect(0xf5d1f000), Kind::none);            // pld [r1]
    check(arm_effect(0x08bd8010), Kind::pop, 8, 0x8010);  // popeq {r4, pc}
    check(arm_effect(0x08bd0010), Kind::other);           // popeq {r4}
    check(arm_effect(0xe8bd6010), Kind::other);           // pop {r4, sp, lr}
    check(arm_effect(0xe3cdd03f), Kind::compute_sp);      // bic sp, sp, #63
    check(arm_effect(0xe04dd003), Kind::compute_sp);      // sub sp, sp, r3
    check(arm_effect(0xe5bcf894), Kind::indirect);        // ldr pc, [ip, #2196]!
    check(arm_effect(0xe59f3010), Kind::none);            // ldr r3, [pc, #16]
    check(arm_effect(0xe58d0004), Kind::none);            // str r0, [sp, #4]
    check(arm_effect(0xe1a04000), Kind::none);            // mov r4, r0
}

TEST_CASE("Thumb instructions and the stack") {
    const auto one = [](unsigned half) { return thumb_effect(half, 0xffff); };
    check(one(0xb570), Kind::push, 16, 0x4070);    // push {r4, r5, r6, lr}
    check(one(0xbd70), Kind::pop, 16, 0x8070);     // pop {r4, r5, r6, pc}
    check(one(0xb085), Kind::add, -20);            // sub sp, #20
    check(one(0xb005), Kind::add, 20);             // add sp, #20
    check(one(0xaf02), Kind::copy_to, 8, 0, 7);    // add r7, sp, #8
    check(one(0x466f), Kind::copy_to, 0, 0, 7);    // mov r7, sp
    check(one(0x46bd), Kind::copy_from, 0, 0, 7);  // mov sp, r7
    check(one(0x3708), Kind::add_to, 8, 0, 7);     // adds r7, #8
    check(one(0x4770), Kind::returns);             // bx lr
    check(one(0xe7fe), Kind::jump, 0);             // b.n .
    check(one(0xd101), Kind::branch, 6);           // bne.n
    check(one(0xd0c6), Kind::branch, 4 - 0x74);    // beq.n
    check(one(0xb910), Kind::branch, 8);           // cbnz
    check(one(0xbb4b), Kind::branch, 0x56);        // cbnz, from 0x21840 to 0x21896
    check(one(0xbf18), Kind::branch);              // it ne
    check(one(0x4798), Kind::call);                // blx r3
    check(one(0x4718), Kind::indirect);            // bx r3
    check(one(0xdf00), Kind::none);                // svc
    check(one(0xde00), Kind::other);               // udf
    check(one(0x449d), Kind::compute_sp);          // add sp, r3
    check(one(0xbf00), Kind::none);                // nop
    check(one(0x4604), Kind::none);                // mov r4, r0
    check(one(0x9001), Kind::none);                // str r0, [sp, #4]
    CHECK(one(0x4604).size == 2);

    check(thumb_effect(0xe92d, 0x43f0), Kind::push, 28, 0x43f0);    // push {r4-r9, lr}
    check(thumb_effect(0xe8bd, 0x83f0), Kind::pop, 28, 0x83f0);     // pop {r4-r9, pc}
    check(thumb_effect(0xf84d, 0xed08), Kind::push, 8, 1u << 14);   // str lr, [sp, #-8]!
    check(thumb_effect(0xf85d, 0xfb04), Kind::pop, 4, 1u << 15);    // ldr pc, [sp], #4
    check(thumb_effect(0xf5ad, 0x5d7d), Kind::add, -16192);         // sub.w sp, sp, #16192
    check(thumb_effect(0xf50d, 0x4d00), Kind::add, 32768);          // add.w sp, sp, #32768
    check(thumb_effect(0xf2ad, 0x4d04), Kind::add, -1028);          // subw sp, sp, #1028
    check(thumb_effect(0xf107, 0x0708), Kind::add_to, 8, 0, 7);     // add.w r7, r7, #8
    check(thumb_effect(0xf107, 0x0d08), Kind::copy_from, 8, 0, 7);  // add.w sp, r7, #8
    check(thumb_effect(0xed2d, 0x8b06), Kind::push, 24);            // vpush {d8-d10}
    check(thumb_effect(0xecbd, 0x8b06), Kind::pop, 24);             // vpop {d8-d10}
    check(thumb_effect(0xf7ff, 0xbf06), Kind::jump, 4 - 0x1f4);     // b.w, 0x1f4 back
    check(thumb_effect(0xf000, 0x80fe), Kind::branch, 0x200);       // beq.w
    check(thumb_effect(0xf47f, 0xaf06), Kind::branch, 4 - 0x1f4);   // bne.w
    check(thumb_effect(0xf000, 0xf8dc), Kind::call);                // bl
    check(thumb_effect(0xf000, 0xe8dc), Kind::call);                // blx
    check(thumb_effect(0xf8dc, 0xf000), Kind::indirect);            // ldr.w pc, [ip]
    check(thumb_effect(0xe96d, 0x4502), Kind::push, 8, 0x30);       // strd r4, r5, [sp, #-8]!
    check(thumb_effect(0xe8fd, 0x4502), Kind::pop, 8, 0x30);        // ldrd r4, r5, [sp], #8
    check(thumb_effect(0xe9dd, 0x3402), Kind::none);                // ldrd r3, r4, [sp, #8]
    check(thumb_effect(0xe893, 0x0003), Kind::none);                // ldmia r3, {r0, r1}
    check(thumb_effect(0xf3bf, 0x8f5b), Kind::none);                // dmb ish
    check(thumb_effect(0xe8d0, 0xf000), Kind::other);               // tbb
    check(thumb_effect(0xf8df, 0xf004), Kind::other);               // ldr.w pc, [pc, #4]
    check(thumb_effect(0xebad, 0x0d03), Kind::compute_sp);          // sub.w sp, sp, r3
    check(thumb_effect(0xf8df, 0xa018), Kind::none);                // ldr.w sl, [pc, #24]
    check(thumb_effect(0xf240, 0x0310), Kind::none);                // movw r3
    check(thumb_effect(0xeb00, 0x0040), Kind::none);                // add.w r0, r0, r0, lsl #1
    check(thumb_effect(0xf8cd, 0x0104), Kind::none);                // str.w r0, [sp, #260]
}

TEST_CASE("Thumb: every instruction of a function with locals") {
    Function code;
    code.thumb({0xb510,          // 8000 push {r4, lr}
                0x4604,          // 8002 mov r4, r0
                0xb085,          // 8004 sub sp, #20
                0xf000, 0xf8dc,  // 8006 bl
                0x4420,          // 800a add r0, r4
                0xb005,          // 800c add sp, #20
                0xbd10});        // 800e pop {r4, pc}
    code.describes(13, 28, {{4, -8}, {14, -4}});
    code.check_at(0x8000, 13, 0, {});
    code.check_at(0x8002, 13, 8, {{4, -8}, {14, -4}});
    code.check_at(0x8004, 13, 8, {{4, -8}, {14, -4}});
    code.check_body(0x8006);
    code.check_at(0x800a, 13, 28, {{4, -8}, {14, -4}});  // only the epilogue follows: the same
    code.check_at(0x800e, 13, 8, {{4, -8}, {14, -4}});
}

TEST_CASE("Thumb: a frame pointer, arguments of a variadic function, a tail call") {
    SECTION("the CFA from r7") {
        Function code;
        code.thumb({0xb590,          // 8000 push {r4, r7, lr}
                    0xb083,          // 8002 sub sp, #12
                    0xaf00,          // 8004 add r7, sp, #0
                    0xf000, 0xf8dc,  // 8006 bl
                    0x370c,          // 800a adds r7, #12
                    0x46bd,          // 800c mov sp, r7
                    0xbd90});        // 800e pop {r4, r7, pc}
        code.describes(7, 24, {{4, -12}, {7, -8}, {14, -4}});
        code.check_at(0x8002, 13, 12, {{4, -12}, {7, -8}, {14, -4}});
        code.check_at(0x8004, 13, 24, {{4, -12}, {7, -8}, {14, -4}});
        code.check_body(0x8006);
        code.check_at(0x800a, 7, 24, {{4, -12}, {7, -8}, {14, -4}});
        code.check_at(0x800c, 7, 12, {{4, -12}, {7, -8}, {14, -4}});
        code.check_at(0x800e, 13, 12, {{4, -12}, {7, -8}, {14, -4}});
    }
    SECTION("variadic") {
        Function code;
        code.thumb({0xb40f,          // 8000 push {r0-r3}
                    0xb500,          // 8002 push {lr}
                    0xf000, 0xf8dc,  // 8004 bl
                    0xf85d, 0xeb04,  // 8008 ldr.w lr, [sp], #4
                    0xb004,          // 800c add sp, #16
                    0x4770});        // 800e bx lr
        code.describes(13, 20, {{0, -16}, {1, -12}, {2, -8}, {3, -4}, {14, -20}});
        code.check_at(0x8002, 13, 16, {});
        code.check_body(0x8004);
        code.check_at(0x8008, 13, 20, {{14, -20}});
        code.check_at(0x800c, 13, 16, {});
        code.check_at(0x800e, 13, 0, {});
    }
    SECTION("a jump out of the function, and one within it") {
        Function code;
        code.thumb({0xb508,          // 8000 push {r3, lr}
                    0xf000, 0xf8dc,  // 8002 bl
                    0xe8bd, 0x4008,  // 8006 pop {r3, lr}
                    0xf7ff, 0xbf06,  // 800a b.w 7e1a
                    0xe7f8});        // 800e b.n 8002
        code.describes(13, 8, {{14, -4}});
        code.check_at(0x8006, 13, 8, {{14, -4}});
        code.check_at(0x800a, 13, 0, {});
        code.check_body(0x800e);
    }
    SECTION("code that needs no frame comes first") {
        Function code;
        code.thumb({0xb910,          // 8000 cbnz r0, 8008
                    0x2001,          // 8002 movs r0, #1
                    0x4770,          // 8004 bx lr
                    0xbf00,          // 8006 nop
                    0xb508,          // 8008 push {r3, lr}
                    0xf000, 0xf8dc,  // 800a bl
                    0xbd08});        // 800e pop {r3, pc}
        code.describes(13, 8, {{14, -4}});
        for (const std::uint64_t address : {0x8002, 0x8004, 0x8008}) code.check_at(address, 13, 0, {});
        code.check_body(0x800a);
        code.check_at(0x800e, 13, 8, {{14, -4}});
    }
}

TEST_CASE("ARM state: every instruction of a function") {
    Function code;
    code.arm({0xe92d4830,    // 8000 push {r4, r5, fp, lr}
              0xe28db00c,    // 8004 add fp, sp, #12
              0xe24dd010,    // 8008 sub sp, sp, #16
              0xeb000001,    // 800c bl
              0xe24bd00c,    // 8010 sub sp, fp, #12
              0xe8bd8830});  // 8014 pop {r4, r5, fp, pc}
    code.describes(11, 4, {{4, -16}, {5, -12}, {11, -8}, {14, -4}});
    code.check_at(0x8000, 13, 0, {});
    code.check_at(0x8004, 13, 16, {{4, -16}, {5, -12}, {11, -8}, {14, -4}});
    code.check_body(0x8008);
    code.check_body(0x800c);
    code.check_at(0x8014, 13, 16, {{4, -16}, {5, -12}, {11, -8}, {14, -4}});
}

TEST_CASE("functions whose entries the linker merged") {
    Function code;
    for (int twice = 0; twice < 2; ++twice)
        code.thumb({0x4b03,          // 8000, 800a ldr r3, [pc, #12]
                    0xb508,          // 8002, 800c push {r3, lr}
                    0xf000, 0xf8dc,  // 8004, 800e bl
                    0xbd08});        // 8008, 8012 pop {r3, pc}
    code.describes(13, 8, {{14, -4}});
    for (const std::uint64_t address : {0x8000, 0x8002, 0x800a, 0x800c}) code.check_at(address, 13, 0, {});
    code.check_body(0x8004);
    code.check_body(0x800e);
}

TEST_CASE("code that contradicts its description is not trusted") {
    Function code;
    code.thumb({0xb510, 0xb085, 0xf000, 0xf8dc, 0xb005, 0xbd10});
    SECTION("another size") { code.describes(13, 24, {{4, -8}, {14, -4}}); }
    SECTION("another register") { code.describes(13, 28, {{5, -8}, {14, -4}}); }
    SECTION("another position") { code.describes(13, 28, {{4, -12}, {14, -4}}); }
    SECTION("no code") {
        code.describes(13, 28, {{4, -8}, {14, -4}});
        code.halves.clear();
    }
    SECTION("a signal frame") {
        code.describes(13, 28, {{4, -8}, {14, -4}});
        code.body.signal_frame = true;
    }
    for (std::uint64_t address = 0x8000; address < 0x800c; address += 2) code.check_body(address);
}
