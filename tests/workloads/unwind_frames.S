/* Frames that no compiler creates, with handwritten call frame information.
 * void NAME(void (*leaf)(void)) calls leaf. */
        .text

/* CFA = rbx + 16; rsp is at an unknown distance. */
        .globl  asm_cfa_in_register
        .type   asm_cfa_in_register, @function
asm_cfa_in_register:
        .cfi_startproc
        push    %rbx
        .cfi_def_cfa_offset 16
        .cfi_offset rbx, -16
        mov     %rsp, %rbx
        .cfi_def_cfa_register rbx
        sub     $320, %rsp
        and     $-64, %rsp
        call    *%rdi
        mov     %rbx, %rsp
        .cfi_def_cfa_register rsp
        pop     %rbx
        .cfi_restore rbx
        .cfi_def_cfa_offset 8
        ret
        .cfi_endproc
        .size   asm_cfa_in_register, .-asm_cfa_in_register

/* CFA = *(rsp + 40) + 16: the frame's address is kept on the stack. */
        .globl  asm_cfa_expression
        .type   asm_cfa_expression, @function
asm_cfa_expression:
        .cfi_startproc
        push    %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset rbp, -16
        mov     %rsp, %rax
        .cfi_def_cfa_register rax
        sub     $80, %rsp
        and     $-16, %rsp
        mov     %rax, 40(%rsp)
        /* DW_CFA_def_cfa_expression, 5 bytes: DW_OP_breg7 (rsp) 40, DW_OP_deref, DW_OP_plus_uconst 16 */
        .cfi_escape 0x0f, 5, 0x77, 40, 0x06, 0x23, 16
        call    *%rdi
        mov     40(%rsp), %rsp
        .cfi_def_cfa rsp, 16
        pop     %rbp
        .cfi_restore rbp
        .cfi_def_cfa_offset 8
        ret
        .cfi_endproc
        .size   asm_cfa_expression, .-asm_cfa_expression

/* An expression locates the caller's rbp, and rbp is used for something else. */
        .globl  asm_saved_elsewhere
        .type   asm_saved_elsewhere, @function
asm_saved_elsewhere:
        .cfi_startproc
        sub     $72, %rsp
        .cfi_def_cfa_offset 80
        mov     %rbp, 24(%rsp)
        /* DW_CFA_expression of register 6 (rbp), 2 bytes: DW_OP_breg7 (rsp) 24 */
        .cfi_escape 0x10, 6, 2, 0x77, 24
        mov     $0x1234567, %ebp
        call    *%rdi
        mov     24(%rsp), %rbp
        .cfi_restore rbp
        add     $72, %rsp
        .cfi_def_cfa_offset 8
        ret
        .cfi_endproc
        .size   asm_saved_elsewhere, .-asm_saved_elsewhere

/* Pushes and pops in its loop: rsp changes at nearly every instruction. */
        .globl  asm_pushes
        .type   asm_pushes, @function
asm_pushes:
        .cfi_startproc
        push    %r12
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset r12, 0
        push    %r13
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset r13, 0
        push    %r14
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset r14, 0
        mov     %rdi, %r12
        mov     $400000, %r13d
1:      .cfi_remember_state
        push    %r13
        .cfi_adjust_cfa_offset 8
        push    %r13
        .cfi_adjust_cfa_offset 8
        pop     %rax
        .cfi_adjust_cfa_offset -8
        pop     %rax
        .cfi_adjust_cfa_offset -8
        dec     %r13d
        jnz     1b
        .cfi_restore_state
        call    *%r12
        pop     %r14
        .cfi_adjust_cfa_offset -8
        .cfi_restore r14
        pop     %r13
        .cfi_adjust_cfa_offset -8
        .cfi_restore r13
        pop     %r12
        .cfi_adjust_cfa_offset -8
        .cfi_restore r12
        ret
        .cfi_endproc
        .size   asm_pushes, .-asm_pushes

        .section .note.GNU-stack,"",@progbits
