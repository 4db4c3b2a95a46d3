// Commands of the server that wait for the agent's thread. Slow ones run on a worker.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <mutex>

#include "agent/commands.h"
#include "agent/control/module_transfer.h"
#include "agent/control/worker.h"
#include "agent/link/link.h"

namespace flamewire::agent {

class CommandQueue {
public:
    // `link` is null until the link has started. `wake`: an eventfd that is written for each command.
    CommandQueue(Control& control, const Machine& machine, const std::atomic<Link*>& link, int wake,
                 ModuleTransfers modules)
        : control_(control), machine_(machine), link_(link), wake_(wake), modules_(std::move(modules)) {}

    // Called on the link's thread.
    void take(wire::Command command);
    // Runs all waiting commands and replies.
    void handle();
    // Waits for the current slow command. Drops the waiting ones.
    void stop() { worker_.stop(); }

private:
    void send_module(const wire::Command& command);

    static constexpr std::size_t worker_capacity = 16;

    Control& control_;
    const Machine& machine_;
    const std::atomic<Link*>& link_;
    int wake_;
    ModuleTransfers modules_;
    std::mutex mutex_;
    std::deque<wire::Command> commands_;
    Worker worker_{worker_capacity};  // last: its thread uses everything above
};

}  // namespace flamewire::agent
