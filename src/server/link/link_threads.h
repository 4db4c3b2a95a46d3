// The threads of the link. The io thread owns all state and never blocks. Work on frames and files goes to the pool.
#pragma once

#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/thread_pool.hpp>

#include <utility>

namespace flamewire::server {

struct LinkThreads {
    asio::io_context& io;
    asio::thread_pool& pool;

    // Runs `work` on the pool, then `done` with its result on the io thread.
    template <class Work, class Done>
    void run(Work work, Done done) const {
        asio::post(pool, [&io = io, work = std::move(work), done = std::move(done)]() mutable {
            auto result = work();
            asio::post(io, [done = std::move(done), result = std::move(result)]() mutable { done(std::move(result)); });
        });
    }
};

}  // namespace flamewire::server
