#include "agent/control/command_queue.h"

#include <unistd.h>

#include <memory>
#include <utility>

#include "wire/control.h"

namespace flamewire::agent {

// Limit of commands that wait for the main thread. More are refused.
static constexpr std::size_t max_waiting_commands = 64;

void CommandQueue::take(wire::Command command) {
    {
        const std::lock_guard lock(mutex_);
        if (commands_.size() < max_waiting_commands) {
            commands_.push_back(std::move(command));
            const std::uint64_t one = 1;
            (void)!::write(wake_, &one, sizeof(one));
            return;
        }
    }
    if (Link* const link = link_) link->reply(wire::encode_error_reply(command.id, "too many commands are waiting"));
}

void CommandQueue::handle() {
    for (;;) {
        wire::Command command;
        {
            const std::lock_guard lock(mutex_);
            if (commands_.empty()) return;
            command = std::move(commands_.front());
            commands_.pop_front();
        }
        if (command.name == "fetch_module") {
            send_module(command);
            continue;
        }
        if (!is_slow(command.name)) {
            link_.load()->reply(handle_command(command, machine_, control_));
            continue;
        }
        const std::string id = command.id;
        auto job = std::make_shared<wire::Command>(std::move(command));  // std::function must be copyable
        const bool taken =
            worker_.submit([this, job] { link_.load()->reply(handle_command(*job, machine_, control_)); });
        if (!taken) link_.load()->reply(wire::encode_error_reply(id, "too many commands are waiting"));
    }
}

void CommandQueue::send_module(const wire::Command& command) {
    const auto read = [&]() -> Result<wire::ModuleChunk> {
        const FetchRequest request = TRY(parse_fetch(command));
        return modules_.read(request);
    };
    auto chunk = read();
    if (chunk && !link_.load()->send_module_chunk(wire::encode_module_chunk(*chunk)))
        chunk = fail(ErrorCode::busy, "the previous part has not been sent yet");
    if (!chunk) link_.load()->reply(encode_fetch_refusal(command.id, chunk.error()));
}

}  // namespace flamewire::agent
