// A stack as the folder keeps it: its id in the stack trie, and what every sample with it has in common.
#pragma once

#include <cstdint>

#include "unwind/frame/stop_reason.h"
#include "unwind/walk/stack_need.h"
#include "wire/batch.h"

namespace flamewire::agent {

// Properties of every sample with the same chain.
namespace stack_flag {
inline constexpr std::uint8_t truncated = 1;
inline constexpr std::uint8_t unknown_process = 2;
inline constexpr std::uint8_t io_wait = 4;
inline constexpr std::uint8_t unnamed_jit = 8;
}  // namespace stack_flag

inline constexpr std::uint8_t need_unknown = unwind::stack_needs;

struct FoldedStack {
    wire::Id stack = 0;
    std::uint8_t flags = 0;
    unwind::StopReason stop = unwind::StopReason::chain_end;
    bool joined = false;
    bool other_stack = false;  // a walk ended at StopReason::other_stack
    std::uint8_t need = need_unknown;
    std::uint16_t user_frames = 0;  // 0: not a user stack
};

}  // namespace flamewire::agent
