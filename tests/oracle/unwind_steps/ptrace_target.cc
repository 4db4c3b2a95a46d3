// Single steps by ptrace, x86-64.
#include <fcntl.h>
#include <signal.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "target.h"

namespace flamewire::steps {
namespace {

[[noreturn]] void die(const char* what) {
    std::perror(what);
    std::exit(2);
}

class PtraceTarget final : public Target {
public:
    explicit PtraceTarget(const std::vector<std::string>& arguments) {
        child_ = ::fork();
        if (child_ < 0) die("fork");
        if (child_ == 0) start(arguments);
        int status = 0;
        if (::waitpid(child_, &status, 0) != child_ || !WIFSTOPPED(status)) die("waitpid");
        ::ptrace(PTRACE_SETOPTIONS, child_, 0, PTRACE_O_EXITKILL);
    }
    ~PtraceTarget() override {
        if (ended_) return;
        ::kill(child_, SIGKILL);
        ::waitpid(child_, nullptr, 0);
    }
    PtraceTarget(const PtraceTarget&) = delete;
    PtraceTarget& operator=(const PtraceTarget&) = delete;

    Event step() override {
        // A signal arrives as a separate stop. The step that delivers it runs only the kernel's part of the delivery.
        const int signal = signal_;
        signal_ = 0;
        resume(PTRACE_SINGLESTEP, signal);
        if (ended_) return Event::ended;
        return signal != 0 ? Event::handler : Event::stepped;
    }

    bool run_to(std::uint64_t address) override {
        constexpr long breakpoint = 0xcc;
        const long word = ::ptrace(PTRACE_PEEKTEXT, child_, address, 0);
        ::ptrace(PTRACE_POKETEXT, child_, address, (word & ~0xffL) | breakpoint);
        resume(PTRACE_CONT, 0);
        if (ended_) return false;
        user_regs_struct registers = raw();
        if (registers.rip != address + 1) return false;
        ::ptrace(PTRACE_POKETEXT, child_, address, word);
        registers.rip = address;
        ::ptrace(PTRACE_SETREGS, child_, 0, &registers);
        return true;
    }

    unwind::Registers registers() override {
        const user_regs_struct raw_registers = raw();
        const std::array in_dwarf_order{raw_registers.rax, raw_registers.rdx, raw_registers.rcx, raw_registers.rbx,
                                        raw_registers.rsi, raw_registers.rdi, raw_registers.rbp, raw_registers.rsp,
                                        raw_registers.r8,  raw_registers.r9,  raw_registers.r10, raw_registers.r11,
                                        raw_registers.r12, raw_registers.r13, raw_registers.r14, raw_registers.r15,
                                        raw_registers.rip};
        unwind::Registers registers(unwind::Arch::x86_64);
        for (std::size_t number = 0; number < in_dwarf_order.size(); ++number)
            registers.set(number, in_dwarf_order[number]);
        return registers;
    }

    std::size_t read(std::uint64_t address, std::span<std::byte> out) override {
        const iovec local{out.data(), out.size()};
        const iovec remote{reinterpret_cast<void*>(address), out.size()};
        const ssize_t count = ::process_vm_readv(child_, &local, 1, &remote, 1, 0);
        return count < 0 ? 0 : static_cast<std::size_t>(count);
    }

    std::vector<Mapping> mappings() override {
        std::ifstream file("/proc/" + std::to_string(child_) + "/maps");
        std::vector<Mapping> mappings;
        for (std::string text; std::getline(file, text);) {
            std::istringstream line(text);
            Mapping mapping;
            char dash = 0;
            std::string permissions, device, inode;
            line >> std::hex >> mapping.start >> dash >> mapping.end >> permissions >> mapping.offset >> device >>
                inode;
            line >> mapping.path;
            mapping.executable = permissions.size() > 2 && permissions[2] == 'x';
            mappings.push_back(mapping);
        }
        return mappings;
    }

private:
    [[noreturn]] static void start(const std::vector<std::string>& arguments) {
        ::personality(ADDR_NO_RANDOMIZE);
        ::ptrace(PTRACE_TRACEME, 0, 0, 0);
        const int null = ::open("/dev/null", O_WRONLY);
        ::dup2(null, 1);
        std::vector<char*> argv;
        for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
        argv.push_back(nullptr);
        ::execv(argv[0], argv.data());
        ::_exit(127);
    }

    user_regs_struct raw() {
        user_regs_struct registers{};
        ::ptrace(PTRACE_GETREGS, child_, 0, &registers);
        return registers;
    }

    void resume(__ptrace_request how, int signal) {
        int status = 0;
        if (::ptrace(how, child_, 0, signal) != 0) die("ptrace");
        if (::waitpid(child_, &status, 0) != child_) die("waitpid");
        if (!WIFSTOPPED(status))
            ended_ = true;
        else if (WSTOPSIG(status) != SIGTRAP)
            signal_ = WSTOPSIG(status);
    }

    pid_t child_ = -1;
    int signal_ = 0;
    bool ended_ = false;
};

}  // namespace

std::unique_ptr<Target> ptrace_target(const std::vector<std::string>& arguments) {
    return std::make_unique<PtraceTarget>(arguments);
}

}  // namespace flamewire::steps
